// RUN: braid-opt %s --braid-propagate-shardings --split-input-file --verify-diagnostics -o /dev/null

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
// expected-error @+1 {{'func.func' op is external and expects replicated values, got argument 0 stated as #comm.sharding<@mesh, [{tp}]>}}
func.func private @f(tensor<8xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}]>})

// -----

comm.mesh @mesh <tp = 2>
// expected-error @+1 {{'func.func' op is external and expects replicated values, got result 0 stated as #comm.sharding<@mesh, [{tp}]>}}
func.func private @f() -> (tensor<8xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}]>})

// -----

comm.mesh @mesh <tp = 2>
// expected-error @+1 {{'func.func' op argument 0: unknown axis 'ep' in mesh 'mesh'}}
func.func @f(%x: tensor<8xf32> {comm.sharding = #comm.sharding<@mesh, [{ep, ?}]>}) { return }
