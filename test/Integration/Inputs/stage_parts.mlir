// A pipeline of two stages whose micro-batches are parts of one input, and whose results are parts of one output.
comm.mesh @mesh <pp = 2>
#first = #comm.place<@mesh, {pp = [0]}>
#last = #comm.place<@mesh, {pp = [1]}>
func.func private @begin(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) {
  %k = nn.linear %x, %w role "key" : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  comm.send(%k) pairs [0 -> 1] over <@mesh, {pp}> : tensor<2x4xf32>
  return
}
func.func private @end(%w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %x = comm.recv pairs [0 -> 1] over <@mesh, {pp}> : tensor<2x4xf32>
  %y = nn.linear %x, %w role "key" : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
func.func @main(%x: tensor<4x4xf32> {nn.name = "x", comm.on = #first})
    -> (tensor<4x4xf32> {nn.name = "y", comm.on = #last})
    attributes {nn.entry} {
  %w0 = nn.parameter "w.0" on <@mesh, {pp = [0]}> : tensor<4x4xf32>
  %w1 = nn.parameter "w.1" on <@mesh, {pp = [1]}> : tensor<4x4xf32>
  %a = nn.slice %x dim 0 from 0 size 2 : tensor<4x4xf32> -> tensor<2x4xf32>
  %b = nn.slice %x dim 0 from 2 size 2 : tensor<4x4xf32> -> tensor<2x4xf32>
  func.call @begin(%a, %w0) {comm.on = #first} : (tensor<2x4xf32>, tensor<4x4xf32>) -> ()
  func.call @begin(%b, %w0) {comm.on = #first} : (tensor<2x4xf32>, tensor<4x4xf32>) -> ()
  %c = func.call @end(%w1) {comm.on = #last} : (tensor<4x4xf32>) -> (tensor<2x4xf32>)
  %d = func.call @end(%w1) {comm.on = #last} : (tensor<4x4xf32>) -> (tensor<2x4xf32>)
  %y = nn.concat %c, %d dim 0 : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
