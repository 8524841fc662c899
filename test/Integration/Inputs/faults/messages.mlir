// Rank 0 sends five messages of one tag to rank 1, of two sizes, and rank 1 answers: a send waits while four messages are on
// their way.
comm.mesh @mesh <pp = 2>
func.func @main(%x: tensor<4x8xf32> {nn.name = "x"}, %z: tensor<2x8xf32> {nn.name = "z"})
    -> (tensor<4x8xf32> {nn.name = "y", comm.global_type = tensor<8x8xf32>, comm.sharding = #comm.sharding<@mesh, [{pp}, {}]>}) attributes {nn.entry} {
  comm.send(%x) pairs [0 -> 1] over <@mesh, {pp}> tag 1 role "first" : tensor<4x8xf32>
  comm.send(%z) pairs [0 -> 1] over <@mesh, {pp}> tag 1 role "second" : tensor<2x8xf32>
  comm.send(%x) pairs [0 -> 1] over <@mesh, {pp}> tag 1 role "third" : tensor<4x8xf32>
  comm.send(%x) pairs [0 -> 1] over <@mesh, {pp}> tag 1 role "fourth" : tensor<4x8xf32>
  %a = comm.recv pairs [0 -> 1] over <@mesh, {pp}> tag 1 role "first" : tensor<4x8xf32>
  comm.send(%a) pairs [1 -> 0] over <@mesh, {pp}> tag 2 role "answer" : tensor<4x8xf32>
  %w = comm.recv pairs [1 -> 0] over <@mesh, {pp}> tag 2 role "answer" : tensor<4x8xf32>
  comm.send(%w) pairs [0 -> 1] over <@mesh, {pp}> tag 1 role "fifth" : tensor<4x8xf32>
  %b = comm.recv pairs [0 -> 1] over <@mesh, {pp}> tag 1 role "second" : tensor<2x8xf32>
  %c = comm.recv pairs [0 -> 1] over <@mesh, {pp}> tag 1 role "third" : tensor<4x8xf32>
  %d = comm.recv pairs [0 -> 1] over <@mesh, {pp}> tag 1 role "fourth" : tensor<4x8xf32>
  %e = comm.recv pairs [0 -> 1] over <@mesh, {pp}> tag 1 role "fifth" : tensor<4x8xf32>
  %bb = nn.concat %b, %b dim 0 : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<4x8xf32>
  %f = nn.add %c, %d : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %g = nn.add %e, %bb : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %y = nn.add %f, %g : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
