// A kernel of the library on the communication queue, between two collectives of bytes: what it reads is received on that
// queue, and what it writes is sent on, while the compute queue multiplies.
comm.mesh @mesh <tp = 2>
rt.kernel @half(tensor<4x16xi8>) -> tensor<2x16xi8> attributes {library = "part", scalars = [0, 0], group = #comm.group<@mesh, {tp}>}
func.func @main(
    %x: tensor<4x16xf32> {nn.name = "x", comm.global_type = tensor<4x16xf32>, comm.sharding = #comm.sharding<@mesh, [{}, {}]>},
    %bytes: tensor<4x16xi8> {nn.name = "bytes", nn.below = 100 : i8, comm.global_type = tensor<4x16xi8>, comm.sharding = #comm.sharding<@mesh, [{}, {}]>})
    -> (tensor<4x16xf32> {nn.name = "y", comm.global_type = tensor<4x32xf32>, comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>},
        tensor<2x16xi8> {nn.name = "same_bytes", comm.global_type = tensor<4x16xi8>, comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>})
    attributes {nn.entry} {
  %w = nn.parameter "w" of tensor<32x16xf32> sharded <@mesh, [{tp}, {}]> : tensor<16x16xf32>
  %b = rt.launch @half rows 32 ins(%bytes : tensor<4x16xi8>) -> tensor<2x16xi8>
  %h = comm.start (%a = %b) : tensor<2x16xi8> -> !comm.handle<tensor<4x16xi8>> {
    %v = comm.all_gather(%a) dim 0 over <@mesh, {tp}> role "first" : tensor<2x16xi8> -> tensor<4x16xi8>
    comm.yield %v : tensor<4x16xi8>
  }
  %g = comm.wait %h on 0 keeping %b : !comm.handle<tensor<4x16xi8>>, tensor<2x16xi8> -> tensor<4x16xi8>
  %p = rt.launch @half rows 32 ins(%g : tensor<4x16xi8>) -> tensor<2x16xi8> on communication
  %k = comm.start (%a = %p) : tensor<2x16xi8> -> !comm.handle<tensor<4x16xi8>> {
    %v = comm.all_gather(%a) dim 0 over <@mesh, {tp}> role "second" : tensor<2x16xi8> -> tensor<4x16xi8>
    comm.yield %v : tensor<4x16xi8>
  }
  %y = nn.linear %x, %w : tensor<4x16xf32>, tensor<16x16xf32> -> tensor<4x16xf32>
  %e = comm.wait %k keeping %p : !comm.handle<tensor<4x16xi8>>, tensor<2x16xi8> -> tensor<4x16xi8>
  %s = rt.launch @half rows 32 ins(%e : tensor<4x16xi8>) -> tensor<2x16xi8>
  return %y, %s : tensor<4x16xf32>, tensor<2x16xi8>
}
