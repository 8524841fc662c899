// RUN: braid-opt %s --split-input-file --verify-diagnostics -o /dev/null

// Titles name the constraint in the documentation of the operation or of the dialect.

// comm.mesh_c2: unique names
// expected-error @+1 {{'comm.mesh' op mesh 'mesh' names axis 'tp' twice [comm.mesh_c2]}}
comm.mesh @mesh <tp = 2, tp = 4>

// -----

// comm.mesh_c2: names
// expected-error @+1 {{'comm.mesh' op mesh 'mesh' has an axis without a name [comm.mesh_c2]}}
comm.mesh @mesh <"" = 2>

// -----

// comm.mesh_c2: sizes
// expected-error @+1 {{'comm.mesh' op mesh axis 'tp' expects a size of at least 1, got 0 [comm.mesh_c2]}}
comm.mesh @mesh <tp = 0>

// -----

// comm.mesh_c1: as many sizes as names
// expected-error @+1 {{'comm.mesh' op expects as many axis sizes as names [comm.mesh_c1]}}
"comm.mesh"() <{sym_name = "mesh", axis_names = ["tp"], axis_sizes = array<i64: 2, 2>}> : () -> ()

// -----

// comm.mesh_c2
// expected-error @+1 {{'comm.mesh' op mesh 'mesh' expects 'order' to be a permutation of 0..3 [comm.mesh_c2]}}
comm.mesh @mesh <dp = 2, tp = 2> order [0, 1, 1, 3]

// -----

// comm.axis_c2
// expected-error @+1 {{expects sub-axis sizes of at least 1, got (0)2 [comm.axis_c2]}}
func.func private @f() attributes {test = #comm.axis<tp:(0)2>}

// -----

// comm.axis_c3
// expected-error @+1 {{expects sub-axis sizes whose product fits 64 bits, got (9223372036854775807)2 [comm.axis_c3]}}
func.func private @f() attributes {test = #comm.axis<tp:(9223372036854775807)2>}

// -----

// comm.axis_c1
// expected-error @+1 {{expects an axis name [comm.axis_c1]}}
func.func private @f() attributes {test = #comm.axis<"">}

// -----

// comm.sharding_c1
// expected-error @+1 {{expects every axis at most once, got 'tp' twice [comm.sharding_c1]}}
func.func private @f() attributes {test = #comm.sharding<@mesh, [{tp}, {tp}]>}

// -----

// comm.sharding_c1: sub-axes
// expected-error @+1 {{expects every axis at most once, got 'tp' twice [comm.sharding_c1]}}
func.func private @f() attributes {test = #comm.sharding<@mesh, [{tp:(1)2}, {}], partial = [tp:(1)4 = sum]>}

// -----

// comm.sharding_c1: sub-axes of no common factorization
// expected-error @+1 {{expects every axis at most once, got 'tp' twice [comm.sharding_c1]}}
func.func private @crossing(tensor<12x12xf32> {comm.sharding = #comm.sharding<@mesh, [{tp:(1)2}, {tp:(3)2}]>})

// -----

// #comm.sharding: reduction
// expected-error @+1 {{expects sum, max or min, got 'mean'}}
func.func private @f() attributes {test = #comm.sharding<@mesh, [{}], partial = [tp = mean]>}

// -----

// #comm.sharding: open dimensions
// expected-error @+1 {{expects '?' to be last}}
func.func private @f() attributes {test = #comm.sharding<@mesh, [{?, tp}]>}

// -----

// A sharded dimension of a parameter cannot be open.
comm.mesh @mesh <tp = 2>
// expected-error @+1 {{'func.func' op argument 0: expects a sharding without open dimensions beside 'comm.global_type', got #comm.sharding<@mesh, [{tp, ?}]> [comm.attributes_c3]}}
func.func @f(%x: tensor<4xf32> {comm.global_type = tensor<8xf32>, comm.sharding = #comm.sharding<@mesh, [{tp, ?}]>}) { return }

// -----

// comm.group_c1
// expected-error @+1 {{expects every axis at most once, got 'tp' twice [comm.group_c1]}}
func.func private @f() attributes {test = #comm.group<@mesh, {tp, tp}>}

// -----

// A malformed mesh gives its own error.
func.func private @f(tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>})
// expected-error @+1 {{'comm.mesh' op mesh axis 'tp' expects a size of at least 1, got 0 [comm.mesh_c2]}}
comm.mesh @mesh <tp = 0>

// -----

// comm.attributes_c1
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op argument 0: expects 'comm.sharding' to be a #comm.sharding, got 1 : i64 [comm.attributes_c1]}}
func.func private @f(tensor<8x16xf32> {comm.sharding = 1})

// -----

// comm.sharding_c2: tensors
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op argument 0: expects a ranked tensor for a sharding, got 'index' [comm.sharding_c2]}}
func.func private @f(index {comm.sharding = #comm.sharding<@mesh, []>})

// -----

// comm.sharding_c2
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op argument 0: expects a sharding of 2 dimensions, got 1 [comm.sharding_c2]}}
func.func private @f(tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}]>})

// -----

// comm.sharding_c3: mesh
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op argument 0: references unknown mesh @other [comm.sharding_c3]}}
func.func private @f(tensor<8x16xf32> {comm.sharding = #comm.sharding<@other, [{tp}, {}]>})

// -----

// comm.sharding_c3: axis
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op argument 0: unknown axis 'pp' in mesh 'mesh' [comm.sharding_c3]}}
func.func private @f(tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{pp}, {}]>})

// -----

// comm.sharding_c3: partial axis
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op argument 0: unknown axis 'pp' in mesh 'mesh' [comm.sharding_c3]}}
func.func private @f(tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}], partial = [pp = sum]>})

// -----

// comm.sharding_c4: divides
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op argument 0: dimension 0 of size 6 does not divide over 'dp', 'tp' (8 shards) [comm.sharding_c4]}}
func.func private @f(tensor<6xf32> {comm.sharding = #comm.sharding<@mesh, [{dp, tp}]>})

// -----

// comm.sharding_c2: on a result
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op result 0: expects a sharding of 2 dimensions, got 0 [comm.sharding_c2]}}
func.func private @f() -> (tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, []>})

// -----

// comm.attributes_c2
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op argument 0: expects 'comm.global_type' to be a statically shaped tensor type, got tensor<?x16xf32> [comm.attributes_c2]}}
func.func private @f(tensor<8x16xf32> {comm.global_type = tensor<?x16xf32>})

// -----

// Sharded values have the same size limit as other values.
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op argument 0: expects at most 2^48 elements, got 'tensor<16777216x33554432xf32>' [comm.sharding_c5]}}
func.func private @f(tensor<16777216x33554432xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>})

// -----

// comm.attributes_c3: beside a sharding
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op argument 0: expects 'comm.sharding' beside 'comm.global_type' [comm.attributes_c3]}}
func.func private @f(tensor<8x16xf32> {comm.global_type = tensor<16x16xf32>})

// -----

// comm.attributes_c4
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op argument 0: expects type 'tensor<8x4xf32>', which is 'tensor<8x16xf32>' sharded as #comm.sharding<@mesh, [{}, {tp}]>, got 'tensor<2x16xf32>' [comm.attributes_c4]}}
func.func private @f(tensor<2x16xf32> {comm.global_type = tensor<8x16xf32>, comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>})

// -----

// unknown attribute
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op argument 0: has unknown attribute 'comm.shard'}}
func.func private @f(tensor<8x16xf32> {comm.shard})

// -----

// comm.attributes_c5
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'arith.negf' op expects 'comm.shardings' to be an array, got unit [comm.attributes_c5]}}
  %0 = arith.negf %x {comm.shardings} : tensor<8x16xf32>
  return
}

// -----

// comm.attributes_c6
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'arith.negf' op expects 'comm.shardings' to have 1 elements, one per result, got 0 [comm.attributes_c6]}}
  %0 = arith.negf %x {comm.shardings = []} : tensor<8x16xf32>
  return
}

// -----

// comm.attributes_c7
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'arith.negf' op result 0: expects a #comm.sharding for a tensor, got unit [comm.attributes_c7]}}
  %0 = arith.negf %x {comm.shardings = [unit]} : tensor<8x16xf32>
  return
}

// -----

// comm.attributes_c6: kind
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'arith.negf' op result 0: expects a #comm.sharding, got "tp" [comm.attributes_c6]}}
  %0 = arith.negf %x {comm.shardings = ["tp"]} : tensor<8x16xf32>
  return
}

// -----

// comm.sharding_c3 on an operation
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'arith.negf' op result 0: sub-axis (1)3 does not divide axis 'tp' of size 4 [comm.sharding_c3]}}
  %0 = arith.negf %x {comm.shardings = [#comm.sharding<@mesh, [{dp, tp:(1)3}, {}]>]} : tensor<8x16xf32>
  return
}

// -----

// unknown attribute
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'arith.negf' op has unknown attribute 'comm.sharding'}}
  %0 = arith.negf %x {comm.sharding = #comm.sharding<@mesh, [{}, {}]>} : tensor<8x16xf32>
  return
}

// -----

// comm.attributes_c8
func.func private @g()
func.func @f() {
  // expected-error @+1 {{'func.call' op expects 'comm.call' to be the name of a call, got "" [comm.attributes_c8]}}
  call @g() {comm.call = ""} : () -> ()
  return
}

// -----

func.func private @g()
func.func @f() {
  // expected-error @+1 {{'func.call' op expects 'comm.call' to be the name of a call, got "a/b" [comm.attributes_c8]}}
  call @g() {comm.call = "a/b"} : () -> ()
  return
}

// -----

func.func private @g()
func.func @f() {
  // expected-error @+1 {{'func.call' op expects 'comm.call' to be the name of a call, got 3 : i64 [comm.attributes_c8]}}
  call @g() {comm.call = 3 : i64} : () -> ()
  return
}

// -----

// comm.attributes_c9
comm.mesh @mesh <pp = 2>
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{'arith.negf' op expects 'comm.on' to be a #comm.place of a call or copy, got #comm.place<@mesh, {pp = [0]}> [comm.attributes_c9]}}
  %0 = arith.negf %x {comm.on = #comm.place<@mesh, {pp = [0]}>} : tensor<8xf32>
  return
}

// -----

func.func private @g()
func.func @f() {
  // expected-error @+1 {{'func.call' op expects 'comm.on' to be a #comm.place of a call or copy, got 3 : i64 [comm.attributes_c9]}}
  func.call @g() {comm.on = 3} : () -> ()
  return
}

// -----

comm.mesh @mesh <pp = 2>
// expected-error @+1 {{'func.func' op argument 0: expects 'comm.on' to be a #comm.place of an entry's argument or result, got #comm.place<@mesh, {pp = [0]}> of another function [comm.attributes_c9]}}
func.func @f(%x: tensor<8xf32> {comm.on = #comm.place<@mesh, {pp = [0]}>}) {
  return
}

// -----

// comm.attributes_c10
comm.mesh @mesh <pp = 2>
// expected-error @+1 {{'func.func' op argument 0: expects no sharding over axis 'pp', along which only some ranks have the value [comm.attributes_c10]}}
func.func @f(%x: tensor<4xf32> {nn.name = "x", comm.on = #comm.place<@mesh, {pp = [0]}>, comm.global_type = tensor<8xf32>, comm.sharding = #comm.sharding<@mesh, [{pp}]>}) attributes {nn.entry} {
  return
}

// -----

// comm.place_c1
// expected-error @+1 {{expects coordinates of at least one axis [comm.place_c1]}}
func.func @f() attributes {p = #comm.place<@mesh, {}>} {
  return
}

// -----

// expected-error @+1 {{expects every axis at most once, got 'pp' twice [comm.place_c1]}}
func.func @f() attributes {p = #comm.place<@mesh, {pp = [0], pp = [1]}>} {
  return
}

// -----

// comm.place_c2
func.func private @g()
func.func @f() {
  // expected-error @+1 {{'func.call' op references unknown mesh @other [comm.place_c2]}}
  func.call @g() {comm.on = #comm.place<@other, {pp = [0]}>} : () -> ()
  return
}

// -----

comm.mesh @mesh <pp = 2>
func.func private @g()
func.func @f() {
  // expected-error @+1 {{'func.call' op unknown axis 'tp' in mesh 'mesh' [comm.place_c2]}}
  func.call @g() {comm.on = #comm.place<@mesh, {tp = [0]}>} : () -> ()
  return
}

// -----

// comm.place_c3
comm.mesh @mesh <pp = 2>
func.func private @g()
func.func @f() {
  // expected-error @+1 {{'func.call' op axis 'pp' of size 2 has no coordinate 2 [comm.place_c3]}}
  func.call @g() {comm.on = #comm.place<@mesh, {pp = [2]}>} : () -> ()
  return
}

// -----

comm.mesh @mesh <pp = 2>
func.func private @g()
func.func @f() {
  // expected-error @+1 {{'func.call' op axis 'pp' of size 2 has no coordinate -1 [comm.place_c3]}}
  func.call @g() {comm.on = #comm.place<@mesh, {pp = [-1]}>} : () -> ()
  return
}

// -----

comm.mesh @mesh <pp = 4>
func.func private @g()
func.func @f() {
  // expected-error @+1 {{'func.call' op axis 'pp' of size 4: expects ascending coordinates, got 0 after 2 [comm.place_c3]}}
  func.call @g() {comm.on = #comm.place<@mesh, {pp = [2, 0]}>} : () -> ()
  return
}

// -----

comm.mesh @mesh <pp = 2>
func.func private @g()
func.func @f() {
  // expected-error @+1 {{'func.call' op axis 'pp' of size 2: expects at least one coordinate [comm.place_c3]}}
  func.call @g() {comm.on = #comm.place<@mesh, {pp = []}>} : () -> ()
  return
}

// -----

comm.mesh @mesh <pp = 2>
func.func private @g()
func.func @f() {
  // expected-error @+1 {{'func.call' op axis 'pp' of size 2: expects some of the coordinates, got all (leave out the axis) [comm.place_c3]}}
  func.call @g() {comm.on = #comm.place<@mesh, {pp = [0, 1]}>} : () -> ()
  return
}
