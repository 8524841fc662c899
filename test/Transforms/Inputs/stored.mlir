// Weights are stored cut over the ranks that share the batch.
comm.mesh @mesh <dp = 2>
func.func private @layer(%w: tensor<32x16xf32>, %b: tensor<32xf32>, %x: tensor<8x4x16xf32>, %v: tensor<16x32xf32>) -> tensor<8x4x16xf32> {
  %0 = nn.linear %x, %w role "up" : tensor<8x4x16xf32>, tensor<32x16xf32> -> tensor<8x4x32xf32>
  %1 = nn.add %0, %b : tensor<8x4x32xf32>, tensor<32xf32> -> tensor<8x4x32xf32>
  %2 = nn.activation gelu %1 : tensor<8x4x32xf32>
  %3 = nn.linear %2, %v role "down" : tensor<8x4x32xf32>, tensor<16x32xf32> -> tensor<8x4x16xf32>
  return %3 : tensor<8x4x16xf32>
}
func.func @main(%x: tensor<8x4x16xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{dp}, {?}, {?}]>})
    -> (tensor<8x4x16xf32> {nn.name = "y"}) attributes {nn.entry} {
  %w = nn.parameter "w" stored <@mesh, [{dp}, {}]> : tensor<32x16xf32>
  %b = nn.parameter "b" stored <@mesh, [{dp}]> : tensor<32xf32>
  %v = nn.parameter "v" stored <@mesh, [{}, {dp}]> : tensor<16x32xf32>
  %u = nn.parameter "u" stored <@mesh, [{dp}, {}]> : tensor<16x16xf32>
  %0 = call @layer(%w, %b, %x, %v) : (tensor<32x16xf32>, tensor<32xf32>, tensor<8x4x16xf32>, tensor<16x32xf32>) -> tensor<8x4x16xf32>
  %1 = call @layer(%w, %b, %0, %v) : (tensor<32x16xf32>, tensor<32xf32>, tensor<8x4x16xf32>, tensor<16x32xf32>) -> tensor<8x4x16xf32>
  %2 = nn.linear %1, %u role "out" : tensor<8x4x16xf32>, tensor<16x16xf32> -> tensor<8x4x16xf32>
  return %2 : tensor<8x4x16xf32>
}
