// RUN: split-file %s %t
// RUN: braid-opt %t/heads.mlir --braid-pad-for-strategy="mesh=tp=2 strategy=tp" --remark-format=emitRemark --remarks-filter=padding -o %t/out 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: FileCheck %s --check-prefix=HEADS < %t/out
// RUN: braid-opt %t/heads.mlir --braid-pad-for-strategy="mesh=tp=8 strategy=tp" | FileCheck %s --check-prefix=COPIES
// RUN: braid-opt %t/heads.mlir --braid-pad-for-strategy="mesh=tp=3 strategy=tp" > %t/same
// RUN: braid-opt %t/heads.mlir --braid-pad-for-strategy="mesh=dp=2,tp=2 strategy=dp" > %t/dp
// RUN: braid-opt %t/heads.mlir > %t/before
// RUN: diff %t/before %t/same
// RUN: diff %t/before %t/dp
// Equal results on ranks that do not divide heads and feed-forward.
// RUN: braid-opt %t/heads.mlir --test-equivalence="pipeline=builtin.module(braid-pad-for-strategy{mesh=tp=2 strategy=tp},braid-apply-strategy{mesh=tp=2 strategy=tp},braid-propagate-shardings,braid-partition) seed=3" | FileCheck %s --check-prefix=TWO
// RUN: braid-opt %t/heads.mlir --test-equivalence="pipeline=builtin.module(braid-pad-for-strategy{mesh=tp=4 strategy=tp-sp},braid-apply-strategy{mesh=tp=4 strategy=tp-sp},braid-propagate-shardings,braid-partition) seed=3" | FileCheck %s --check-prefix=FOUR
// RUN: braid-opt %t/heads.mlir --test-equivalence="pipeline=builtin.module(braid-pad-for-strategy{mesh=tp=8 strategy=tp},braid-apply-strategy{mesh=tp=8 strategy=tp},braid-propagate-shardings,braid-partition) seed=3" | FileCheck %s --check-prefix=EIGHT

// TWO: equivalent on 1 and 2 ranks
// FOUR: equivalent on 1 and 4 ranks
// EIGHT: equivalent on 1 and 8 ranks

// REMARK: remark: {{.*}}9 heads of 3 groups are padded to 12 of 4 for axis 'tp' of size 2: the weights of its matmuls grow from 864 to 1152 elements
// REMARK: remark: {{.*}}a dimension of 15 is padded to 16 for axis 'tp' of size 2: the weights of its matmuls grow from 810 to 864 elements

// 9 heads in 3 groups on two ranks become 12 in 4; the last group is padding.
// HEADS-LABEL: func.func @main
// HEADS-DAG: %[[Q0:.*]] = nn.parameter "0.q" slices ["0.q"[18, 18]] : tensor<24x18xf32>
// HEADS-DAG: %[[K0:.*]] = nn.parameter "0.k" slices ["0.k"[6, 18]] : tensor<8x18xf32>
// HEADS-DAG: %[[B0:.*]] = nn.parameter "0.kb" slices ["0.kb"[6]] : tensor<8xf32>
// HEADS-DAG: %[[O0:.*]] = nn.parameter "0.o" slices ["0.o"[18, 18]] : tensor<18x24xf32>
// Slices of a checkpoint's tensor are padded like full tensors.
// HEADS-DAG: %[[V1:.*]] = nn.parameter "1.v" slices ["fused"[18, 10] permuted [1, 0] from [2, 0] size [6, 18]] : tensor<8x18xf32>
// HEADS-DAG: nn.parameter "1.up" slices ["1.up"[15, 18]] : tensor<16x18xf32>
// HEADS: call @layer({{.*}}) : (tensor<2x8x18xf32>, tensor<24x18xf32>, tensor<8x18xf32>, tensor<8xf32>, tensor<8x18xf32>, tensor<18x24xf32>, tensor<16x18xf32>, tensor<16x18xf32>, tensor<18x16xf32>) -> tensor<2x8x18xf32>
// HEADS-LABEL: func.func private @layer
// HEADS: nn.linear {{.*}} role "attention.query" : tensor<2x8x18xf32>, tensor<24x18xf32> -> tensor<2x8x24xf32>
// HEADS: nn.split_heads {{.*}} : tensor<2x8x24xf32> -> tensor<2x8x12x2xf32>
// HEADS: nn.attention {{.*}} : tensor<2x8x12x2xf32>, tensor<2x8x4x2xf32>, tensor<2x8x4x2xf32> -> tensor<2x8x12x2xf32>
// HEADS: nn.merge_heads {{.*}} : tensor<2x8x12x2xf32> -> tensor<2x8x24xf32>
// HEADS: nn.linear {{.*}} role "attention.output" : tensor<2x8x24xf32>, tensor<18x24xf32> -> tensor<2x8x18xf32>
// HEADS: nn.mul {{.*}} : tensor<2x8x16xf32>, tensor<2x8x16xf32> -> tensor<2x8x16xf32>

// On eight ranks each group becomes two with the same key and value and half of its query heads each: 16 heads instead of 24.
// COPIES: nn.parameter "0.q" slices ["0.q"[18, 18] size [6, 18], "0.q"[18, 18] from [6, 0] to [8, 0] size [6, 18], "0.q"[18, 18] from [12, 0] to [16, 0] size [6, 18]] : tensor<32x18xf32>
// COPIES: nn.parameter "0.k" slices ["0.k"[6, 18] size [2, 18], "0.k"[6, 18] to [2, 0] size [4, 18], "0.k"[6, 18] from [2, 0] to [6, 0] size [4, 18], "0.k"[6, 18] from [4, 0] to [10, 0] size [2, 18]] : tensor<16x18xf32>

//--- heads.mlir
func.func @main(%x: tensor<2x8x18xf32> {nn.name = "hidden"}) -> (tensor<2x8x18xf32> {nn.name = "out"}) attributes {nn.entry} {
  %q0 = nn.parameter "0.q" : tensor<18x18xf32>
  %k0 = nn.parameter "0.k" : tensor<6x18xf32>
  %b0 = nn.parameter "0.kb" : tensor<6xf32>
  %v0 = nn.parameter "0.v" : tensor<6x18xf32>
  %o0 = nn.parameter "0.o" : tensor<18x18xf32>
  %g0 = nn.parameter "0.gate" : tensor<15x18xf32>
  %u0 = nn.parameter "0.up" : tensor<15x18xf32>
  %d0 = nn.parameter "0.down" : tensor<18x15xf32>
  %0 = call @layer(%x, %q0, %k0, %b0, %v0, %o0, %g0, %u0, %d0) : (tensor<2x8x18xf32>, tensor<18x18xf32>, tensor<6x18xf32>, tensor<6xf32>, tensor<6x18xf32>, tensor<18x18xf32>, tensor<15x18xf32>, tensor<15x18xf32>, tensor<18x15xf32>) -> tensor<2x8x18xf32>
  %q1 = nn.parameter "1.q" : tensor<18x18xf32>
  %k1 = nn.parameter "1.k" : tensor<6x18xf32>
  %b1 = nn.parameter "1.kb" : tensor<6xf32>
  %v1 = nn.parameter "1.v" slices ["fused"[18, 10] permuted [1, 0] from [2, 0] size [6, 18]] : tensor<6x18xf32>
  %o1 = nn.parameter "1.o" : tensor<18x18xf32>
  %g1 = nn.parameter "1.gate" : tensor<15x18xf32>
  %u1 = nn.parameter "1.up" : tensor<15x18xf32>
  %d1 = nn.parameter "1.down" : tensor<18x15xf32>
  %1 = call @layer(%0, %q1, %k1, %b1, %v1, %o1, %g1, %u1, %d1) : (tensor<2x8x18xf32>, tensor<18x18xf32>, tensor<6x18xf32>, tensor<6xf32>, tensor<6x18xf32>, tensor<18x18xf32>, tensor<15x18xf32>, tensor<15x18xf32>, tensor<18x15xf32>) -> tensor<2x8x18xf32>
  return %1 : tensor<2x8x18xf32>
}
func.func private @layer(%x: tensor<2x8x18xf32>, %wq: tensor<18x18xf32>, %wk: tensor<6x18xf32>, %bk: tensor<6xf32>, %wv: tensor<6x18xf32>,
    %wo: tensor<18x18xf32>, %wg: tensor<15x18xf32>, %wu: tensor<15x18xf32>, %wd: tensor<18x15xf32>) -> tensor<2x8x18xf32> {
  %q = nn.linear %x, %wq role "attention.query" : tensor<2x8x18xf32>, tensor<18x18xf32> -> tensor<2x8x18xf32>
  %kp = nn.linear %x, %wk role "attention.key" : tensor<2x8x18xf32>, tensor<6x18xf32> -> tensor<2x8x6xf32>
  %k = nn.add %kp, %bk : tensor<2x8x6xf32>, tensor<6xf32> -> tensor<2x8x6xf32>
  %v = nn.linear %x, %wv role "attention.value" : tensor<2x8x18xf32>, tensor<6x18xf32> -> tensor<2x8x6xf32>
  %cos, %sin = nn.rotary_table [1.0] : tensor<8x1xf32>
  %qh = nn.split_heads %q : tensor<2x8x18xf32> -> tensor<2x8x9x2xf32>
  %kh = nn.split_heads %k : tensor<2x8x6xf32> -> tensor<2x8x3x2xf32>
  %vh = nn.split_heads %v : tensor<2x8x6xf32> -> tensor<2x8x3x2xf32>
  %qr = nn.rotary %qh, %cos, %sin : tensor<2x8x9x2xf32>, tensor<8x1xf32>
  %kr = nn.rotary %kh, %cos, %sin : tensor<2x8x3x2xf32>, tensor<8x1xf32>
  %c = nn.attention causal %qr, %kr, %vh scale 0.7 : tensor<2x8x9x2xf32>, tensor<2x8x3x2xf32>, tensor<2x8x3x2xf32> -> tensor<2x8x9x2xf32>
  %m = nn.merge_heads %c : tensor<2x8x9x2xf32> -> tensor<2x8x18xf32>
  %o = nn.linear %m, %wo role "attention.output" : tensor<2x8x18xf32>, tensor<18x18xf32> -> tensor<2x8x18xf32>
  %r = nn.add %o, %x : tensor<2x8x18xf32>, tensor<2x8x18xf32> -> tensor<2x8x18xf32>
  %g = nn.linear %r, %wg role "mlp.gate" : tensor<2x8x18xf32>, tensor<15x18xf32> -> tensor<2x8x15xf32>
  %u = nn.linear %r, %wu role "mlp.up" : tensor<2x8x18xf32>, tensor<15x18xf32> -> tensor<2x8x15xf32>
  %s = nn.activation silu %g : tensor<2x8x15xf32>
  %t = nn.mul %s, %u : tensor<2x8x15xf32>, tensor<2x8x15xf32> -> tensor<2x8x15xf32>
  %d = nn.linear %t, %wd role "mlp.down" : tensor<2x8x15xf32>, tensor<18x15xf32> -> tensor<2x8x18xf32>
  %y = nn.add %d, %r : tensor<2x8x18xf32>, tensor<2x8x18xf32> -> tensor<2x8x18xf32>
  return %y : tensor<2x8x18xf32>
}
