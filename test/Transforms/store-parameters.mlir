// RUN: braid-opt %s --braid-apply-strategy="mesh=dp=2,tp=2 strategy=tp,dp,fsdp" --braid-propagate-shardings --braid-store-parameters=strategy=tp,dp,fsdp | FileCheck %s
// RUN: braid-opt %s --braid-apply-strategy="mesh=dp=2,tp=2 strategy=tp,dp" --braid-propagate-shardings --braid-store-parameters=strategy=tp,dp | FileCheck %s --check-prefix=NONE
// RUN: sed 's/dp = 2/dp = 1/' %s | braid-opt --braid-apply-strategy="mesh=dp=1,tp=2 strategy=tp,dp,fsdp" --braid-propagate-shardings --braid-store-parameters=strategy=tp,dp,fsdp | FileCheck %s --check-prefix=NONE
// RUN: braid-opt %s --braid-apply-strategy="mesh=dp=2,tp=2 strategy=tp,dp,fsdp" --braid-propagate-shardings --braid-store-parameters=strategy=tp,dp,fsdp --remark-format=emitRemark --remarks-filter=sharding -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: not braid-opt %s --braid-apply-strategy="mesh=dp=2,tp=2 strategy=none" --braid-store-parameters=strategy=fsdp 2>&1 | FileCheck %s --check-prefix=EARLY
// RUN: braid-opt %s --test-equivalence="pipeline=builtin.module(braid-apply-strategy{mesh=dp=2,tp=2 strategy=tp,dp,fsdp},braid-propagate-shardings,braid-store-parameters{strategy=tp,dp,fsdp},braid-partition,canonicalize) seed=3" | FileCheck %s --check-prefix=SAME
// RUN: braid-opt %s --braid-apply-strategy="mesh=dp=2,tp=2 strategy=tp,dp,fsdp" --braid-propagate-shardings --braid-store-parameters=strategy=tp,dp,fsdp --braid-partition | FileCheck %s --check-prefix=LOCAL
// RUN: sed 's/dp = 2, //; s/, dp}/}/' %s | not braid-opt --braid-apply-strategy="mesh=tp=2 strategy=tp" --braid-store-parameters=strategy=fsdp 2>&1 | FileCheck %s --check-prefix=AXIS
// NONE: nn.parameter "up"
// NONE-NOT: stored
// NONE: nn.parameter "own" {{.*}} stored
// NONE-NOT: stored
// AXIS: error: 'comm.mesh' op has no axis 'dp' for strategy 'fsdp'
// REMARK: 'odd': no dimension divides over 'dp' of size 2, and it is stored as it is used
// EARLY: error: 'nn.parameter' op has no sharding (braid-propagate-shardings states one)
// SAME: 4 ranks

comm.mesh @mesh <dp = 2, tp = 2>
func.func @main(%x: tensor<8x3x16xf32> {nn.name = "x"}) -> (tensor<8x3x16xf32> {nn.name = "y"}, tensor<3x5xf32> {nn.name = "z"}) attributes {nn.entry} {
  // The axes of the use come first: a gather over dp leaves them.
  // CHECK: nn.parameter "up" {comm.shardings = [#comm.sharding<@mesh, [{tp}, {}]>]} stored <@mesh, [{tp, dp}, {}]>
  // CHECK: nn.parameter "down" {comm.shardings = [#comm.sharding<@mesh, [{}, {tp}]>]} stored <@mesh, [{dp}, {tp}]>
  // LOCAL: nn.parameter "up" of tensor<32x16xf32> sharded <@mesh, [{tp, dp}, {}]> : tensor<8x16xf32>
  // LOCAL: comm.all_gather(%{{.*}}) dim 0 over <@mesh, {dp}> role "up" : tensor<8x16xf32> -> tensor<16x16xf32>
  // LOCAL: comm.all_gather(%{{.*}}) dim 0 over <@mesh, {dp}> role "down" : tensor<8x16xf32> -> tensor<16x16xf32>
  %w = nn.parameter "up" : tensor<32x16xf32>
  %v = nn.parameter "down" : tensor<16x32xf32>
  // The first dimension does not divide.
  // CHECK: nn.parameter "rows" {comm.shardings = [#comm.sharding<@mesh, [{}, {}]>]} stored <@mesh, [{}, {dp}]>
  %r = nn.parameter "rows" : tensor<3x16xf32>
  // One dimension, as stated, and none that divides.
  // CHECK-NOT: nn.parameter "bias" {{.*}} stored
  // CHECK: nn.parameter "own" {comm.shardings = [#comm.sharding<@mesh, [{}, {}]>]} stored <@mesh, [{}, {tp, dp}]>
  // CHECK-NOT: stored
  %b = nn.parameter "bias" : tensor<16xf32>
  %o = nn.parameter "own" stored <@mesh, [{}, {tp, dp}]> : tensor<16x16xf32>
  %z = nn.parameter "odd" : tensor<3x5xf32>
  %0 = nn.linear %x, %w role "mlp.up" : tensor<8x3x16xf32>, tensor<32x16xf32> -> tensor<8x3x32xf32>
  %1 = nn.activation gelu %0 : tensor<8x3x32xf32>
  %2 = nn.linear %1, %v role "mlp.down" : tensor<8x3x32xf32>, tensor<16x32xf32> -> tensor<8x3x16xf32>
  %3 = nn.add %2, %b : tensor<8x3x16xf32>, tensor<16xf32> -> tensor<8x3x16xf32>
  %4 = nn.linear %3, %o : tensor<8x3x16xf32>, tensor<16x16xf32> -> tensor<8x3x16xf32>
  %5 = nn.add %4, %r : tensor<8x3x16xf32>, tensor<3x16xf32> -> tensor<8x3x16xf32>
  return %5, %z : tensor<8x3x16xf32>, tensor<3x5xf32>
}
