// Two stages exchange values: rank 0 sends, then receives; rank 1 receives, then sends.
comm.mesh @mesh <pp = 2>
func.func @main(%x: tensor<4x8xf32> {nn.name = "x"})
    -> (tensor<4x8xf32> {nn.name = "y", comm.global_type = tensor<8x8xf32>, comm.sharding = #comm.sharding<@mesh, [{pp}, {}]>}) attributes {nn.entry} {
  %a = nn.activation gelu %x : tensor<4x8xf32>
  comm.send(%a) pairs [0 -> 1] over <@mesh, {pp}> tag 1 role "forward" : tensor<4x8xf32>
  %b = comm.recv pairs [0 -> 1] over <@mesh, {pp}> tag 1 role "forward" : tensor<4x8xf32>
  %c = nn.activation tanh %b : tensor<4x8xf32>
  comm.send(%c) pairs [1 -> 0] over <@mesh, {pp}> tag 2 role "backward" : tensor<4x8xf32>
  %d = comm.recv pairs [1 -> 0] over <@mesh, {pp}> tag 2 role "backward" : tensor<4x8xf32>
  %y = nn.add %b, %d : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
