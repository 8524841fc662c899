// Two ranks send to each other, four messages each way, and then receive: a send waits only while four messages are on their
// way.
comm.mesh @mesh <pp = 2>
func.func @main(%x: tensor<4x8xf32> {nn.name = "x"})
    -> (tensor<4x8xf32> {nn.name = "y", comm.global_type = tensor<8x8xf32>, comm.sharding = #comm.sharding<@mesh, [{pp}, {}]>}) attributes {nn.entry} {
  comm.send(%x) pairs [0 -> 1, 1 -> 0] over <@mesh, {pp}> tag 1 role "first" : tensor<4x8xf32>
  comm.send(%x) pairs [0 -> 1, 1 -> 0] over <@mesh, {pp}> tag 1 role "second" : tensor<4x8xf32>
  comm.send(%x) pairs [0 -> 1, 1 -> 0] over <@mesh, {pp}> tag 1 role "third" : tensor<4x8xf32>
  comm.send(%x) pairs [0 -> 1, 1 -> 0] over <@mesh, {pp}> tag 1 role "fourth" : tensor<4x8xf32>
  %a = comm.recv pairs [0 -> 1, 1 -> 0] over <@mesh, {pp}> tag 1 role "first" : tensor<4x8xf32>
  comm.send(%a) pairs [0 -> 1, 1 -> 0] over <@mesh, {pp}> tag 1 role "fifth" : tensor<4x8xf32>
  %b = comm.recv pairs [0 -> 1, 1 -> 0] over <@mesh, {pp}> tag 1 role "second" : tensor<4x8xf32>
  %c = comm.recv pairs [0 -> 1, 1 -> 0] over <@mesh, {pp}> tag 1 role "third" : tensor<4x8xf32>
  %d = comm.recv pairs [0 -> 1, 1 -> 0] over <@mesh, {pp}> tag 1 role "fourth" : tensor<4x8xf32>
  %e = comm.recv pairs [0 -> 1, 1 -> 0] over <@mesh, {pp}> tag 1 role "fifth" : tensor<4x8xf32>
  %f = nn.add %b, %c : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %g = nn.add %d, %e : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %y = nn.add %f, %g : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
