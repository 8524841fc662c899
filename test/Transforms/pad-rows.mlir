// RUN: braid-opt %s --split-input-file --braid-pad-for-strategy="mesh=tp=2 strategy=tp-sp" | FileCheck %s --check-prefix=SP
// RUN: braid-opt %s --split-input-file --braid-pad-for-strategy="mesh=dp=2 strategy=dp" | FileCheck %s --check-prefix=DP
// RUN: braid-opt %s --split-input-file --braid-pad-for-strategy="mesh=dp=2,tp=2 strategy=tp" | FileCheck %s --check-prefix=NONE
// RUN: braid-opt %s --split-input-file --braid-pad-for-strategy="mesh=tp=2 strategy=tp-sp" --remark-format=emitRemark --remarks-filter=padding -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: braid-opt %s --split-input-file --braid-pad-for-strategy="mesh=dp=2,tp=2 strategy=tp-sp,dp" --braid-apply-strategy="mesh=dp=2,tp=2 strategy=tp-sp,dp" --braid-propagate-shardings --braid-partition --canonicalize --cse | FileCheck %s --check-prefix=RANK

// Padding is an equivalence on one device already, and the partitioned programs are equivalent too.
// RUN: braid-opt %S/Inputs/uneven.mlir --test-equivalence="pipeline=builtin.module(braid-pad-for-strategy{mesh=dp=2,tp=2 strategy=tp-sp,dp}) seed=1" | FileCheck %s --check-prefix=SAME
// RUN: braid-opt %S/Inputs/uneven.mlir --test-equivalence="pipeline=builtin.module(braid-pad-for-strategy{mesh=tp=2 strategy=tp-sp},braid-apply-strategy{mesh=tp=2 strategy=tp-sp},braid-propagate-shardings,braid-partition,canonicalize,cse) seed=2" | FileCheck %s --check-prefix=SAME
// RUN: braid-opt %S/Inputs/uneven.mlir --test-equivalence="pipeline=builtin.module(braid-pad-for-strategy{mesh=dp=2,tp=2 strategy=tp-sp,vocab,dp},braid-apply-strategy{mesh=dp=2,tp=2 strategy=tp-sp,vocab,dp},braid-propagate-shardings,braid-partition,canonicalize,cse,braid-start-collectives) seed=3" | FileCheck %s --check-prefix=SAME
// RUN: braid-opt %S/Inputs/llama-4-layers.mlir --test-equivalence="pipeline=builtin.module(braid-pad-for-strategy{mesh=tp=3 strategy=tp-sp},braid-apply-strategy{mesh=tp=3 strategy=tp-sp},braid-propagate-shardings,braid-partition,canonicalize,cse) seed=4" | FileCheck %s --check-prefix=SAME
// RUN: braid-opt %S/Inputs/bert-4-layers.mlir --test-equivalence="pipeline=builtin.module(braid-pad-for-strategy{mesh=dp=3 strategy=auto},braid-apply-strategy{mesh=dp=3 strategy=auto},braid-propagate-shardings,braid-partition,canonicalize,cse) seed=5" | FileCheck %s --check-prefix=SAME
// SAME: equivalent on 1 and


// NONE-NOT: nn.slice
// NONE-NOT: nn.concat

// The operand is padded inside, the positions' table by a row of zeros in the file's place, and the result outside.
// SP-LABEL: func.func @block
// SP-SAME: (%[[X:.*]]: tensor<3x5x4xf32> {nn.name = "x"}) -> (tensor<3x6x4xf32> {nn.name = "y", nn.unpadded = tensor<3x5x4xf32>})
// SP-DAG: %[[L:.*]] = nn.slice %[[X]] dim 1 from 4 size 1 : tensor<3x5x4xf32> -> tensor<3x1x4xf32>
// SP-DAG: %[[P:.*]] = nn.concat %[[X]], %[[L]] dim 1 : tensor<3x5x4xf32>, tensor<3x1x4xf32> -> tensor<3x6x4xf32>
// SP-DAG: %[[T:.*]] = nn.parameter "positions" slices ["positions"[5, 4]] : tensor<6x4xf32>
// SP: %[[A:.*]] = nn.add %[[P]], %[[T]] : tensor<3x6x4xf32>, tensor<6x4xf32> -> tensor<3x6x4xf32>
// SP: nn.linear %[[A]], %{{.*}} role "mlp.up" : tensor<3x6x4xf32>
// SP: nn.linear %{{.*}} role "mlp.down" : {{.*}} -> tensor<3x6x4xf32>
// SP: %[[Y:.*]] = nn.add
// SP: return %[[Y]] : tensor<3x6x4xf32>

// DP-LABEL: func.func @block
// DP-SAME: (%[[X:.*]]: tensor<3x5x4xf32> {nn.name = "x"}) -> (tensor<4x5x4xf32> {nn.name = "y", nn.unpadded = tensor<3x5x4xf32>})
// DP-DAG: %[[L:.*]] = nn.slice %[[X]] dim 0 from 2 size 1 : tensor<3x5x4xf32> -> tensor<1x5x4xf32>
// DP-DAG: %[[P:.*]] = nn.concat %[[X]], %[[L]] dim 0 : tensor<3x5x4xf32>, tensor<1x5x4xf32> -> tensor<4x5x4xf32>
// DP-DAG: %[[T:.*]] = nn.parameter "positions" : tensor<5x4xf32>
// DP: nn.add %[[P]], %[[T]] : tensor<4x5x4xf32>, tensor<5x4xf32> -> tensor<4x5x4xf32>

// REMARK: remark: {{.*}}a dimension of 5 is padded to 6 for axis 'tp' of size 2: 5 results get 15 more rows, 336 bytes; values padded: 1, cut: 0

// A rank holds 3 of 6 rows of 2 of 4 sequences.
// RANK-LABEL: func.func @block
// RANK: nn.concat {{.*}} dim 0
// RANK: comm.part {{.*}} dim 0 over <@mesh, {dp}>
// RANK: comm.all_gather({{.*}}) dim 1 over <@mesh, {tp}> {{.*}}: tensor<2x3x4xf32> -> tensor<2x6x4xf32>
// RANK-NEXT: nn.linear {{.*}} role "mlp.up" : tensor<2x6x4xf32>
// RANK: comm.reduce_scatter sum({{.*}}) dim 1 over <@mesh, {tp}> {{.*}}: tensor<2x6x4xf32> -> tensor<2x3x4xf32>
// RANK-NEXT: %[[Y:.*]] = nn.add {{.*}} : tensor<2x3x4xf32>, tensor<2x3x4xf32> -> tensor<2x3x4xf32>
// RANK-NEXT: return %[[Y]]
func.func @block(%x: tensor<3x5x4xf32> {nn.name = "x"}) -> (tensor<3x5x4xf32> {nn.name = "y"}) attributes {nn.entry} {
  %t = nn.parameter "positions" : tensor<5x4xf32>
  %u = nn.parameter "up" : tensor<8x4xf32>
  %d = nn.parameter "down" : tensor<4x8xf32>
  %0 = nn.add %x, %t : tensor<3x5x4xf32>, tensor<5x4xf32> -> tensor<3x5x4xf32>
  %1 = nn.linear %0, %u role "mlp.up" : tensor<3x5x4xf32>, tensor<8x4xf32> -> tensor<3x5x8xf32>
  %2 = nn.activation gelu %1 : tensor<3x5x8xf32>
  %3 = nn.linear %2, %d role "mlp.down" : tensor<3x5x8xf32>, tensor<4x8xf32> -> tensor<3x5x4xf32>
  %4 = nn.add %3, %0 : tensor<3x5x4xf32>, tensor<3x5x4xf32> -> tensor<3x5x4xf32>
  return %4 : tensor<3x5x4xf32>
}

// -----

// Attention over the sequence and the selection of the last token get all rows of the value and no others. For a padded
// batch they compute one more sequence.
// SP-LABEL: func.func @whole
// SP: %[[A:.*]] = nn.add %{{.*}}, %{{.*}} : tensor<3x6x4xf32>, tensor<3x6x4xf32>
// SP: %[[H:.*]] = nn.split_heads {{.*}} -> tensor<3x6x2x2xf32>
// SP-NEXT: %[[Q:.*]] = nn.slice %[[H]] dim 1 from 0 size 5 : tensor<3x6x2x2xf32> -> tensor<3x5x2x2xf32>
// SP-NEXT: %[[W:.*]] = nn.attention %[[Q]], %[[Q]], %[[Q]] {{.*}} -> tensor<3x5x2x2xf32>
// SP-NEXT: nn.slice %[[W]] dim 1 from 4 size 1
// SP-NEXT: %[[P:.*]] = nn.concat {{.*}} -> tensor<3x6x2x2xf32>
// SP-NEXT: nn.merge_heads %[[P]]
// SP: %[[O:.*]] = nn.linear {{.*}} role "attention.output"
// SP-NEXT: %[[R:.*]] = nn.add %[[O]], %[[A]]
// SP-NEXT: %[[C:.*]] = nn.slice %[[R]] dim 1 from 0 size 5 : tensor<3x6x4xf32> -> tensor<3x5x4xf32>
// SP: nn.last_token %[[C]] mask %{{.*}} : tensor<3x5x4xf32>, tensor<3x5xi64> -> tensor<3x1x4xf32>
// DP-LABEL: func.func @whole
// DP: nn.attention {{.*}} -> tensor<4x5x2x2xf32>
// DP-NOT: nn.slice
// DP: nn.last_token {{.*}} : tensor<4x5x4xf32>, tensor<4x5xi64> -> tensor<4x1x4xf32>
// REMARK: remark: {{.*}}a dimension of 5 is padded to 6 for axis 'tp' of size 2
// RANK-LABEL: func.func @whole
func.func @whole(%x: tensor<3x5x4xf32> {nn.name = "x"}, %m: tensor<3x5xi64> {nn.name = "m"})
    -> (tensor<3x1x4xf32> {nn.name = "y"}) attributes {nn.entry} {
  %wq = nn.parameter "q" : tensor<4x4xf32>
  %wo = nn.parameter "o" : tensor<4x4xf32>
  %a = nn.add %x, %x : tensor<3x5x4xf32>, tensor<3x5x4xf32> -> tensor<3x5x4xf32>
  %0 = nn.linear %a, %wq role "attention.query" : tensor<3x5x4xf32>, tensor<4x4xf32> -> tensor<3x5x4xf32>
  %1 = nn.split_heads %0 : tensor<3x5x4xf32> -> tensor<3x5x2x2xf32>
  %2 = nn.attention %1, %1, %1 scale 0.5 : tensor<3x5x2x2xf32>, tensor<3x5x2x2xf32>, tensor<3x5x2x2xf32> -> tensor<3x5x2x2xf32>
  %3 = nn.merge_heads %2 : tensor<3x5x2x2xf32> -> tensor<3x5x4xf32>
  %4 = nn.linear %3, %wo role "attention.output" : tensor<3x5x4xf32>, tensor<4x4xf32> -> tensor<3x5x4xf32>
  %r = nn.add %4, %a : tensor<3x5x4xf32>, tensor<3x5x4xf32> -> tensor<3x5x4xf32>
  %5 = nn.last_token %r mask %m : tensor<3x5x4xf32>, tensor<3x5xi64> -> tensor<3x1x4xf32>
  return %5 : tensor<3x1x4xf32>
}
