// A pipeline of two stages that decodes: each keeps the keys of its own layer.
comm.mesh @mesh <pp = 2>
#first = #comm.place<@mesh, {pp = [0]}>
#last = #comm.place<@mesh, {pp = [1]}>
func.func private @begin(%x: tensor<2x1x4xf32>, %w: tensor<4x4xf32>, %keys: tensor<2x8x4xf32>, %position: tensor<2xi32>) -> tensor<2x8x4xf32> {
  %k = nn.linear %x, %w role "key" : tensor<2x1x4xf32>, tensor<4x4xf32> -> tensor<2x1x4xf32>
  %keys1 = nn.append %k to %keys dim 1 at %position : tensor<2x1x4xf32>, tensor<2x8x4xf32>, tensor<2xi32>
  %a = nn.activation tanh %k : tensor<2x1x4xf32>
  comm.send(%a) pairs [0 -> 1] over <@mesh, {pp}> : tensor<2x1x4xf32>
  return %keys1 : tensor<2x8x4xf32>
}
func.func private @end(%w: tensor<4x4xf32>, %keys: tensor<2x8x4xf32>, %position: tensor<2xi32>) -> (tensor<2x8x4xf32>, tensor<2x8x4xf32>) {
  %x = comm.recv pairs [0 -> 1] over <@mesh, {pp}> : tensor<2x1x4xf32>
  %k = nn.linear %x, %w role "key" : tensor<2x1x4xf32>, tensor<4x4xf32> -> tensor<2x1x4xf32>
  %keys1 = nn.append %k to %keys dim 1 at %position : tensor<2x1x4xf32>, tensor<2x8x4xf32>, tensor<2xi32>
  %y = nn.activation tanh %keys1 : tensor<2x8x4xf32>
  return %keys1, %y : tensor<2x8x4xf32>, tensor<2x8x4xf32>
}
func.func @decode(%x: tensor<2x1x4xf32> {nn.name = "x", comm.on = #first}, %position: tensor<2xi32> {nn.name = "position", nn.below = 8 : i32},
    %k0: tensor<2x8x4xf32> {nn.name = "keys.0", nn.state, comm.on = #first}, %k1: tensor<2x8x4xf32> {nn.name = "keys.1", nn.state, comm.on = #last})
    -> (tensor<2x8x4xf32> {nn.name = "keys.0", comm.on = #first}, tensor<2x8x4xf32> {nn.name = "keys.1", comm.on = #last}, tensor<2x8x4xf32> {nn.name = "y", comm.on = #last})
    attributes {nn.entry} {
  %w0 = nn.parameter "w.0" on <@mesh, {pp = [0]}> : tensor<4x4xf32>
  %w1 = nn.parameter "w.1" on <@mesh, {pp = [1]}> : tensor<4x4xf32>
  %keys0 = func.call @begin(%x, %w0, %k0, %position) {comm.on = #first} : (tensor<2x1x4xf32>, tensor<4x4xf32>, tensor<2x8x4xf32>, tensor<2xi32>) -> tensor<2x8x4xf32>
  %keys1, %y = func.call @end(%w1, %k1, %position) {comm.on = #last} : (tensor<4x4xf32>, tensor<2x8x4xf32>, tensor<2xi32>) -> (tensor<2x8x4xf32>, tensor<2x8x4xf32>)
  return %keys0, %keys1, %y : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>
}
