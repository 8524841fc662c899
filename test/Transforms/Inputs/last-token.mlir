comm.mesh @mesh <dp = 2, tp = 2, sp = 2>
func.func @main(%x: tensor<4x8x8xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{dp}, {sp}, {tp}]>},
                %m: tensor<4x8xi64> {nn.name = "m", comm.sharding = #comm.sharding<@mesh, [{dp}, {sp}]>},
                %w: tensor<8x8xf32> {nn.name = "w"})
    -> (tensor<4x1x8xf32> {nn.name = "y"}) attributes {nn.entry} {
  %0 = nn.linear %x, %w : tensor<4x8x8xf32>, tensor<8x8xf32> -> tensor<4x8x8xf32>
  %1 = nn.last_token %0 mask %m : tensor<4x8x8xf32>, tensor<4x8xi64> -> tensor<4x1x8xf32>
  return %1 : tensor<4x1x8xf32>
}
