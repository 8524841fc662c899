// Gradients of two layers over data parallelism: each is reduced in a bucket of its own while the next one is computed, and
// the update reads both.
comm.mesh @mesh <dp = 2>
func.func @main(
    %x: tensor<8x4xf32> {nn.name = "x", comm.global_type = tensor<16x4xf32>, comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>},
    %d: tensor<8x6xf32> {nn.name = "d", comm.global_type = tensor<16x6xf32>, comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>})
    -> (tensor<6x4xf32> {nn.name = "y"}, tensor<6x6xf32> {nn.name = "z"}) attributes {nn.entry} {
  %w = nn.parameter "w" : tensor<6x4xf32>
  %v = nn.parameter "v" : tensor<6x6xf32>
  %g = nn.matmul %d transposed, %x role "second" : tensor<8x6xf32>, tensor<8x4xf32> -> tensor<6x4xf32>
  %h0 = comm.start (%a = %g) : tensor<6x4xf32> -> !comm.handle<tensor<6x4xf32>> {
    %r = comm.all_reduce sum(%a) over <@mesh, {dp}> role "bucket.0" : tensor<6x4xf32>
    comm.yield %r : tensor<6x4xf32>
  }
  %f = nn.matmul %d transposed, %d role "first" : tensor<8x6xf32>, tensor<8x6xf32> -> tensor<6x6xf32>
  %h1 = comm.start (%a = %f) : tensor<6x6xf32> -> !comm.handle<tensor<6x6xf32>> {
    %r = comm.all_reduce sum(%a) over <@mesh, {dp}> role "bucket.1" : tensor<6x6xf32>
    comm.yield %r : tensor<6x6xf32>
  }
  %s0 = comm.wait %h0 keeping %g : !comm.handle<tensor<6x4xf32>>, tensor<6x4xf32> -> tensor<6x4xf32>
  %y = nn.add %w, %s0 : tensor<6x4xf32>, tensor<6x4xf32> -> tensor<6x4xf32>
  %s1 = comm.wait %h1 keeping %f : !comm.handle<tensor<6x6xf32>>, tensor<6x6xf32> -> tensor<6x6xf32>
  %z = nn.add %v, %s1 : tensor<6x6xf32>, tensor<6x6xf32> -> tensor<6x6xf32>
  return %y, %z : tensor<6x4xf32>, tensor<6x6xf32>
}
