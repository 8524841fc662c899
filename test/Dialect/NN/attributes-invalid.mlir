// RUN: braid-opt %s --split-input-file --verify-diagnostics

//===----------------------------------------------------------------------===//
// Discardable attributes
//===----------------------------------------------------------------------===//

// nn.attributes_c1
// expected-error @+1 {{'func.func' op expects 'nn.entry' to be a unit attribute of a function with a body [nn.attributes_c1]}}
func.func @entry() attributes {nn.entry = 1 : i64} { return }

// -----

// nn.attributes_c1
// expected-error @+1 {{'func.func' op expects 'nn.entry' to be a unit attribute of a function with a body [nn.attributes_c1]}}
func.func private @entry() attributes {nn.entry}

// -----

// nn.attributes_c1
// expected-error @+1 {{'builtin.module' op expects 'nn.entry' to be a unit attribute of a function with a body [nn.attributes_c1]}}
module attributes {nn.entry} {}

// -----

// nn.attributes_c2
// expected-error @+1 {{'func.func' op expects 'nn.name' to be a string that is not empty, got 3 : i64 [nn.attributes_c2]}}
func.func @name(%x: tensor<f32> {nn.name = 3 : i64}) attributes {nn.entry} { return }

// -----

// nn.attributes_c2
// expected-error @+1 {{'func.func' op expects 'nn.name' to be a string that is not empty, got "" [nn.attributes_c2]}}
func.func @name(%x: tensor<f32> {nn.name = "x"}) -> (tensor<f32> {nn.name = ""}) attributes {nn.entry} { return %x : tensor<f32> }

// -----

// nn.attributes_c2
// expected-error @+1 {{'func.func' op expects 'nn.name' on arguments and results of an entry only [nn.attributes_c2]}}
func.func @name(%x: tensor<f32> {nn.name = "x"}) { return }

// -----

// nn.attributes_c3
// expected-error @+1 {{'func.func' op expects 'nn.name' on every argument of an entry, argument 1 has none [nn.attributes_c3]}}
func.func @name(%x: tensor<f32> {nn.name = "x"}, %y: tensor<f32>) attributes {nn.entry} { return }

// -----

// nn.attributes_c3
// expected-error @+1 {{'func.func' op expects 'nn.name' on every result of an entry, result 0 has none [nn.attributes_c3]}}
func.func @name(%x: tensor<f32> {nn.name = "x"}) -> tensor<f32> attributes {nn.entry} { return %x : tensor<f32> }

// -----

// nn.attributes_c3
// expected-error @+1 {{'func.func' op expects different names for its arguments, got 'x' twice [nn.attributes_c3]}}
func.func @name(%x: tensor<f32> {nn.name = "x"}, %y: tensor<f32> {nn.name = "x"}) attributes {nn.entry} { return }

// -----

// nn.attributes_c5
// expected-error @+1 {{'func.func' op expects 'nn.default' on arguments of an entry only [nn.attributes_c5]}}
func.func @default(%x: tensor<4xi64> {nn.default = 1 : i64}) { return }

// -----

// nn.attributes_c5
// expected-error @+1 {{'func.func' op expects 'nn.default' of argument 0 to be an integer of its elements' type 'i64', got 1 : i32 [nn.attributes_c5]}}
func.func @default(%x: tensor<4xi64> {nn.default = 1 : i32, nn.name = "x"}) attributes {nn.entry} { return }

// -----

// nn.attributes_c5
// expected-error @+1 {{'func.func' op expects 'nn.below' of argument 0 to be an integer of its elements' type 'f32', got 1.000000e+00 : f32 [nn.attributes_c5]}}
func.func @below(%x: tensor<4xf32> {nn.below = 1.0 : f32, nn.name = "x"}) attributes {nn.entry} { return }

// -----

// nn.attributes_c5
// expected-error @+1 {{'func.func' op expects 'nn.below' of argument 0 to be at least 1, got 0 [nn.attributes_c5]}}
func.func @below(%x: tensor<4xi64> {nn.below = 0 : i64, nn.name = "x"}) attributes {nn.entry} { return }

// -----

// nn.attributes_c5
// expected-error @+1 {{'func.func' op expects 'nn.default' of argument 0 to be at least 0, got -1 [nn.attributes_c5]}}
func.func @default(%x: tensor<4xi64> {nn.default = -1 : i64, nn.name = "x"}) attributes {nn.entry} { return }

// -----

// nn.attributes_c5
// expected-error @+1 {{'func.func' op expects 'nn.default' of argument 0 to be below 2, got 2 [nn.attributes_c5]}}
func.func @default(%x: tensor<4xi64> {nn.below = 2 : i64, nn.default = 2 : i64, nn.name = "x"}) attributes {nn.entry} { return }

// -----

// expected-error @+1 {{'func.func' op has unknown attribute 'nn.nmae' of the nn dialect}}
func.func @name(%x: tensor<f32> {nn.nmae = "x"}) { return }

// -----

// expected-error @+1 {{'func.func' op has unknown attribute 'nn.etnry' of the nn dialect}}
func.func @name() attributes {nn.etnry} { return }

// -----

//===----------------------------------------------------------------------===//
// #nn.slice
//===----------------------------------------------------------------------===//

// nn.slice_attr_c1
// expected-error @+1 {{expects the name of a checkpoint's tensor [nn.slice_attr_c1]}}
func.func private @slice() attributes {s = #nn.slice<""[4]>}

// -----

// nn.slice_attr_c2
// expected-error @+1 {{expects lists of the rank of tensor 'w', which is 2 [nn.slice_attr_c2]}}
func.func private @slice() attributes {s = #nn.slice<"w"[4, 8] from [1]>}

// -----

// nn.slice_attr_c2
// expected-error @+1 {{expects lists of the rank of tensor 'w', which is 2 [nn.slice_attr_c2]}}
func.func private @slice() attributes {s = #nn.slice<"w"[4, 8] permuted [1, 0, 2]>}

// -----

// nn.slice_attr_c3
// expected-error @+1 {{expects a permutation of 2 dimensions, got [1, 1] [nn.slice_attr_c3]}}
func.func private @slice() attributes {s = #nn.slice<"w"[4, 8] permuted [1, 1]>}

// -----

// nn.slice_attr_c3
// expected-error @+1 {{expects a permutation of 2 dimensions, got [0, 2] [nn.slice_attr_c3]}}
func.func private @slice() attributes {s = #nn.slice<"w"[4, 8] permuted [0, 2]>}

// -----

// nn.slice_attr_c4
// expected-error @+1 {{expects a static shape for tensor 'w' [nn.slice_attr_c4]}}
func.func private @slice() attributes {s = #nn.slice<"w"[-4] size [1]>}

// -----

// nn.slice_attr_c4
// expected-error @+1 {{expects a slice inside of tensor 'w', got offset 0 and size 0 in dimension 0 of size 4 [nn.slice_attr_c4]}}
func.func private @slice() attributes {s = #nn.slice<"w"[4] size [0]>}

// -----

// nn.slice_attr_c4: dimension 1 of the permuted tensor is the tensor's first.
// expected-error @+1 {{expects a slice inside of tensor 'w', got offset 2 and size 3 in dimension 1 of size 4 [nn.slice_attr_c4]}}
func.func private @slice() attributes {s = #nn.slice<"w"[4, 8] permuted [1, 0] from [0, 2] size [8, 3]>}

// -----

// nn.slice_attr_c4: the end must not wrap around.
// expected-error @+1 {{got offset 9223372036854775807 and size 4 in dimension 0 of size 4 [nn.slice_attr_c4]}}
func.func private @slice() attributes {s = #nn.slice<"w"[4] from [9223372036854775807]>}

// -----

// nn.slice_attr_c5
// expected-error @+1 {{expects destination offsets of at least 0, got -1 [nn.slice_attr_c5]}}
func.func private @slice() attributes {s = #nn.slice<"w"[4] to [-1]>}

// -----

// nn.attributes_c4
// expected-error @+1 {{'func.func' op expects 'nn.unpadded' to be a statically shaped tensor type, got 3 : i64 [nn.attributes_c4]}}
func.func @unpadded(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<4xf32> {nn.name = "y", nn.unpadded = 3}) attributes {nn.entry} {
  return %x : tensor<4xf32>
}

// -----

// nn.attributes_c4
// expected-error @+1 {{'func.func' op expects 'nn.unpadded' on results of an entry only [nn.attributes_c4]}}
func.func @unpadded(%x: tensor<4xf32>) -> (tensor<4xf32> {nn.unpadded = tensor<3xf32>}) {
  return %x : tensor<4xf32>
}

// -----

// nn.attributes_c4
// expected-error @+1 {{'func.func' op expects 'nn.unpadded' of result 0 to be the beginning of 'tensor<4xf32>', got 'tensor<5xf32>' [nn.attributes_c4]}}
func.func @unpadded(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<4xf32> {nn.name = "y", nn.unpadded = tensor<5xf32>}) attributes {nn.entry} {
  return %x : tensor<4xf32>
}

// -----

// nn.attributes_c6
// expected-error @+1 {{'func.func' op expects 'nn.state' to be a unit attribute of an argument of an entry [nn.attributes_c6]}}
func.func @state(%x: tensor<4xf32> {nn.state}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// nn.attributes_c6
// expected-error @+1 {{'func.func' op expects 'nn.state' to be a unit attribute of an argument of an entry [nn.attributes_c6]}}
func.func @state(%x: tensor<4xf32> {nn.name = "x", nn.state = 1}) -> (tensor<4xf32> {nn.name = "x"}) attributes {nn.entry} {
  return %x : tensor<4xf32>
}

// -----

// nn.attributes_c6
// expected-error @+1 {{'func.func' op expects a result with the new value of state 'keys', got none of this name [nn.attributes_c6]}}
func.func @state(%x: tensor<4xf32> {nn.name = "keys", nn.state}) -> (tensor<4xf32> {nn.name = "y"}) attributes {nn.entry} {
  return %x : tensor<4xf32>
}

// -----

// nn.attributes_c6
// expected-error @+1 {{'func.func' op expects state 'keys' to keep its type 'tensor<4xf32>', got a result of type 'tensor<5xf32>' [nn.attributes_c6]}}
func.func @state(%x: tensor<4xf32> {nn.name = "keys", nn.state}, %y: tensor<5xf32> {nn.name = "y"})
    -> (tensor<5xf32> {nn.name = "keys"}) attributes {nn.entry} {
  return %y : tensor<5xf32>
}

// -----

// nn.attributes_c6
comm.mesh @mesh <tp = 2>
// expected-error @+1 {{'func.func' op expects state 'keys' to keep its type 'tensor<8xf32>', got a result of type 'tensor<4xf32>' [nn.attributes_c6]}}
func.func @state(%x: tensor<4xf32> {nn.name = "keys", nn.state, comm.global_type = tensor<8xf32>, comm.sharding = #comm.sharding<@mesh, [{tp}]>})
    -> (tensor<4xf32> {nn.name = "keys", comm.global_type = tensor<4xf32>, comm.sharding = #comm.sharding<@mesh, [{}]>}) attributes {nn.entry} {
  return %x : tensor<4xf32>
}

// -----

// nn.attributes_c7
// expected-error @+1 {{'func.func' op expects only the result of a state to have an argument's name, got "keys" of argument 0, which has no 'nn.state' [nn.attributes_c7]}}
func.func @state(%x: tensor<4xf32> {nn.name = "keys"}) -> (tensor<4xf32> {nn.name = "keys"}) attributes {nn.entry} {
  return %x : tensor<4xf32>
}
