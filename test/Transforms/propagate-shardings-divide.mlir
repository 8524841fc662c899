// RUN: braid-opt %s --braid-apply-strategy="mesh=tp=4" --braid-propagate-shardings --remark-format=emitRemark --remarks-filter=sharding -o %t 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: FileCheck %s < %t
// RUN: braid-opt %s --test-equivalence="pipeline=builtin.module(braid-apply-strategy{mesh=tp=4},braid-propagate-shardings,braid-partition)" | FileCheck %s --check-prefix=EQUIV

// 6 heads on 4 ranks: the axis divides the weights (24 over 4), but only a sub-axis divides the heads. The rest is gathered,
// with a remark.
// REMARK: remark: {{.*}}nn.split_heads: dimension 'head' of size 6 does not divide over axis 'tp' of size 4 and is split 2 ways
// EQUIV: equivalent on 1 and 4 ranks: comm.all_gather x1
func.func @f(%x: tensor<4x8x24xf32> {nn.name = "x"}, %w: tensor<24x24xf32> {nn.name = "w"}) -> (tensor<4x8x6x4xf32> {nn.name = "y"}) attributes {nn.entry} {
  // CHECK: nn.linear {{.*}} [#comm.sharding<@mesh, [{}, {}, {tp}]>]
  %0 = nn.linear %x, %w role "attention.query" : tensor<4x8x24xf32>, tensor<24x24xf32> -> tensor<4x8x24xf32>
  // CHECK: nn.split_heads {{.*}} [#comm.sharding<@mesh, [{}, {}, {tp:(1)2}, {}]>]
  %1 = nn.split_heads %0 : tensor<4x8x24xf32> -> tensor<4x8x6x4xf32> loc("encoder.layer.0.attention.query")
  return %1 : tensor<4x8x6x4xf32>
}
