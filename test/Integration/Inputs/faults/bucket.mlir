// Two gradients in one bucket: one all_reduce of two values, and an update that reads both.
comm.mesh @mesh <dp = 2>
func.func @main(
    %x: tensor<8x4xf32> {nn.name = "x", comm.global_type = tensor<16x4xf32>, comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>},
    %d: tensor<8x6xf32> {nn.name = "d", comm.global_type = tensor<16x6xf32>, comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>},
    %e: tensor<8x6xf32> {nn.name = "e", comm.global_type = tensor<16x6xf32>, comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>})
    -> (tensor<6x4xf32> {nn.name = "y"}) attributes {nn.entry} {
  %g = nn.matmul %d transposed, %x role "first" : tensor<8x6xf32>, tensor<8x4xf32> -> tensor<6x4xf32>
  %f = nn.matmul %e transposed, %x role "second" : tensor<8x6xf32>, tensor<8x4xf32> -> tensor<6x4xf32>
  %h = comm.start (%a = %g, %b = %f) : tensor<6x4xf32>, tensor<6x4xf32> -> !comm.handle<tensor<6x4xf32>, tensor<6x4xf32>> {
    %r, %s = comm.all_reduce sum(%a, %b) over <@mesh, {dp}> role "bucket" : tensor<6x4xf32>, tensor<6x4xf32>
    comm.yield %r, %s : tensor<6x4xf32>, tensor<6x4xf32>
  }
  %u, %v = comm.wait %h keeping %g, %f : !comm.handle<tensor<6x4xf32>, tensor<6x4xf32>>, tensor<6x4xf32>, tensor<6x4xf32> -> tensor<6x4xf32>, tensor<6x4xf32>
  %y = nn.mul %u, %v : tensor<6x4xf32>, tensor<6x4xf32> -> tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}
