// RUN: braid-opt %s --braid-propagate-shardings --split-input-file --verify-diagnostics -o /dev/null

// Heads that the axis does not divide: the operation, the dimension and the axis.
comm.mesh @mesh <tp = 4>
func.func @heads(%x: tensor<4x8x24xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}, {tp}]>}) -> tensor<4x8x6x4xf32> {
  // expected-error @+1 {{'nn.split_heads' op dimension 'head' of size 6 does not divide over axis 'tp' of size 4}}
  %0 = nn.split_heads %x : tensor<4x8x24xf32> -> tensor<4x8x6x4xf32>
  return %0 : tensor<4x8x6x4xf32>
}

// -----

// expected-error @+1 {{expects a comm.mesh in the module (braid-apply-strategy makes one)}}
module {
  func.func @f() { return }
}

// -----

comm.mesh @mesh <tp = 2>
func.func @f(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  // expected-error @+1 {{'comm.all_reduce' op is not expected before partitioning}}
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// -----

comm.mesh @mesh <tp = 2>
// expected-error @+1 {{'func.func' op argument 0 expects a sharding without partial axes}}
func.func @f(%x: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}], partial = [tp = sum]>}) { return }

// -----

comm.mesh @mesh <tp = 2>
// expected-error @+1 {{'func.func' op is partitioned already}}
func.func @f(%x: tensor<8x8xf32> {comm.global_type = tensor<8x16xf32>, comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>}) { return }

// -----

comm.mesh @mesh <tp = 2>
func.func @f() {
  // expected-error @+1 {{'nn.parameter' op is partitioned already}}
  %0 = nn.parameter "w" of tensor<8xf32> sharded <@mesh, [{tp}]> : tensor<4xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
// expected-error @+1 {{'func.func' op expects one block to propagate shardings through, got 2}}
func.func @f() {
  cf.br ^bb1
^bb1:
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'func.call' op states result 0 as #comm.sharding<@mesh, [{}, {tp}]>, but 'g' gives it as #comm.sharding<@mesh, [{tp}, {}]>}}
  %0 = func.call @g(%x) {comm.shardings = [#comm.sharding<@mesh, [{}, {tp}]>]} : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return
}
func.func private @g(%x: tensor<8x16xf32>) -> (tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>}) {
  return %x : tensor<8x16xf32>
}

// -----

comm.mesh @mesh <tp = 2>
// expected-error @+1 {{'func.func' op is external and works on whole values, got argument 0 stated as #comm.sharding<@mesh, [{tp}]>}}
func.func private @f(tensor<8xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}]>})

// -----

comm.mesh @mesh <tp = 2>
// expected-error @+1 {{'func.func' op is external and works on whole values, got result 0 stated as #comm.sharding<@mesh, [{tp}]>}}
func.func private @f() -> (tensor<8xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}]>})

// -----

comm.mesh @mesh <tp = 2>
// expected-error @+1 {{'func.func' op argument 0: unknown axis 'ep' in mesh 'mesh'}}
func.func @f(%x: tensor<8xf32> {comm.sharding = #comm.sharding<@mesh, [{ep, ?}]>}) { return }
