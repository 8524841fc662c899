// A feed-forward layer of tensor parallelism with a bias, in a function of its own: the second matmul gives addends, and one
// all_reduce makes them a sum.
comm.mesh @mesh <dp = 2, tp = 2>
func.func private @layer(%x: tensor<4x16xf32>, %up: tensor<16x16xf32>, %down: tensor<16x16xf32>, %b: tensor<16xf32>) -> tensor<4x16xf32> {
  %u = nn.linear %x, %up role "up" : tensor<4x16xf32>, tensor<16x16xf32> -> tensor<4x16xf32>
  %g = nn.activation gelu %u : tensor<4x16xf32>
  %p = nn.linear %g, %down role "down" : tensor<4x16xf32>, tensor<16x16xf32> -> tensor<4x16xf32>
  %s = comm.all_reduce sum(%p) over <@mesh, {tp}> role "down" : tensor<4x16xf32>
  %r = nn.add %s, %b : tensor<4x16xf32>, tensor<16xf32> -> tensor<4x16xf32>
  return %r : tensor<4x16xf32>
}
func.func @main(
    %x: tensor<4x16xf32> {nn.name = "x", comm.global_type = tensor<8x16xf32>, comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>})
    -> (tensor<4x16xf32> {nn.name = "y", comm.global_type = tensor<8x16xf32>, comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>},
        tensor<8x16xf32> {nn.name = "all"})
    attributes {nn.entry} {
  %up = nn.parameter "up" of tensor<32x16xf32> sharded <@mesh, [{tp}, {}]> : tensor<16x16xf32>
  %down = nn.parameter "down" of tensor<16x32xf32> sharded <@mesh, [{}, {tp}]> : tensor<16x16xf32>
  %b = nn.parameter "b" : tensor<16xf32>
  %y = func.call @layer(%x, %up, %down, %b) : (tensor<4x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %t = nn.activation tanh %y : tensor<4x16xf32>
  %all = comm.all_gather(%t) dim 0 over <@mesh, {dp}> role "all" : tensor<4x16xf32> -> tensor<8x16xf32>
  return %y, %all : tensor<4x16xf32>, tensor<8x16xf32>
}
