comm.mesh @mesh <dp = 2, tp = 2, sp = 2>
func.func @main(%x: tensor<4x8x8xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{dp}, {sp}, {tp}]>},
                %y: tensor<4x3x8xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{dp}, {}, {tp}]>},
                %v: tensor<8x8xf32> {nn.name = "v"}, %w: tensor<8x8xf32> {nn.name = "w"})
    -> (tensor<4x6x8xf32> {nn.name = "z"}, tensor<4x6x3xf32> {nn.name = "s"}) attributes {nn.entry} {
  %0 = nn.linear %x, %v : tensor<4x8x8xf32>, tensor<8x8xf32> -> tensor<4x8x8xf32>
  %1 = nn.slice %0 dim 1 from 3 size 3 : tensor<4x8x8xf32> -> tensor<4x3x8xf32>
  %2 = nn.linear %y, %w : tensor<4x3x8xf32>, tensor<8x8xf32> -> tensor<4x3x8xf32>
  %3 = nn.concat %1, %2 dim 1 : tensor<4x3x8xf32>, tensor<4x3x8xf32> -> tensor<4x6x8xf32>
  %4 = nn.slice %3 dim 2 from 1 size 3 : tensor<4x6x8xf32> -> tensor<4x6x3xf32>
  return %3, %4 : tensor<4x6x8xf32>, tensor<4x6x3xf32>
}
