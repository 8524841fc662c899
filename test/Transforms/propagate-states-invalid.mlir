// RUN: braid-opt %s -split-input-file -verify-diagnostics --braid-propagate-shardings

comm.mesh @mesh <tp = 2>
// expected-error @below {{expects state "keys" to keep its sharding #comm.sharding<@mesh, [{tp}]>, got a result with #comm.sharding<@mesh, [{}]>}}
func.func @run(%keys: tensor<4xf32> {nn.name = "keys", nn.state, comm.sharding = #comm.sharding<@mesh, [{tp}]>})
    -> (tensor<4xf32> {nn.name = "keys", comm.sharding = #comm.sharding<@mesh, [{}]>}) attributes {nn.entry} {
  return %keys : tensor<4xf32>
}

// -----

comm.mesh @mesh <tp = 2>
// expected-note @below {{the other entry}}
func.func @prefill(%keys: tensor<4xf32> {nn.name = "keys", nn.state}) -> (tensor<4xf32> {nn.name = "keys"}) attributes {nn.entry} {
  return %keys : tensor<4xf32>
}
// expected-error @below {{expects state "keys" to have type 'tensor<4xf32>' as in entry 'prefill', got 'tensor<6xf32>'}}
func.func @decode(%keys: tensor<6xf32> {nn.name = "keys", nn.state}) -> (tensor<6xf32> {nn.name = "keys"}) attributes {nn.entry} {
  return %keys : tensor<6xf32>
}

// -----

comm.mesh @mesh <tp = 2>
// expected-note @below {{the other entry}}
func.func @prefill(%keys: tensor<4xf32> {nn.name = "keys", nn.state, comm.sharding = #comm.sharding<@mesh, [{tp}]>})
    -> (tensor<4xf32> {nn.name = "keys"}) attributes {nn.entry} {
  return %keys : tensor<4xf32>
}
// expected-error @below {{expects state "keys" to have sharding #comm.sharding<@mesh, [{tp}]> as in entry 'prefill', got #comm.sharding<@mesh, [{}]>}}
func.func @decode(%keys: tensor<4xf32> {nn.name = "keys", nn.state, comm.sharding = #comm.sharding<@mesh, [{}]>})
    -> (tensor<4xf32> {nn.name = "keys"}) attributes {nn.entry} {
  return %keys : tensor<4xf32>
}
