// RUN: split-file %s %t
// RUN: not braid-opt %t/mlp.mlir --braid-apply-strategy="mesh=dp=2,pp=2" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not braid-opt %t/mlp.mlir --braid-apply-strategy="mesh=dp2" 2>&1 | FileCheck %s --check-prefix=MALFORMED
// RUN: not braid-opt %t/mlp.mlir --braid-apply-strategy="mesh=tp=x" 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not braid-opt %t/mlp.mlir --braid-apply-strategy="mesh=tp=2,," 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not braid-opt %t/mlp.mlir --braid-apply-strategy="mesh=tp=0" 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not braid-opt %t/mlp.mlir --braid-apply-strategy="mesh=tp=2,tp=2" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not braid-opt %t/mlp.mlir --braid-apply-strategy="mesh=tp=99999999999999999999" 2>&1 | FileCheck %s --check-prefix=HUGE
// RUN: not braid-opt %t/mlp.mlir --braid-apply-strategy="mesh=tp=2 strategy=dp" 2>&1 | FileCheck %s --check-prefix=LACKS
// RUN: not braid-opt %t/mlp.mlir --braid-apply-strategy="mesh=tp=2 strategy=zero" 2>&1 | FileCheck %s --check-prefix=STRATEGY
// RUN: not braid-opt %t/mlp.mlir --braid-apply-strategy="mesh=tp=2 strategy=tp,tp-sp" 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not braid-opt %t/mlp.mlir --braid-apply-strategy="mesh=tp=2 strategy=vocab" 2>&1 | FileCheck %s --check-prefix=VOCABULARY
// RUN: not braid-opt %t/mlp.mlir --braid-apply-strategy="mesh=tp=2 strategy=" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: braid-opt %t/sequence.mlir --braid-apply-strategy="mesh=tp=4 strategy=tp-sp" --remark-format=emitRemark --remarks-filter=sharding 2>&1 | FileCheck %s --check-prefix=SEQUENCE
// RUN: not braid-opt %t/rank.mlir --braid-apply-strategy="mesh=tp=2 strategy=tp-sp" 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: not braid-opt %t/mlp.mlir --braid-apply-strategy="mesh=tp=5" 2>&1 | FileCheck %s --check-prefix=WEIGHT
// RUN: not braid-opt %t/mlp.mlir --braid-apply-strategy="mesh=dp=3" 2>&1 | FileCheck %s --check-prefix=BATCH
// RUN: not braid-opt %t/no-role.mlir --braid-apply-strategy="mesh=tp=2" 2>&1 | FileCheck %s --check-prefix=NOROLE
// RUN: not braid-opt %t/other-mesh.mlir --braid-apply-strategy="mesh=tp=2" 2>&1 | FileCheck %s --check-prefix=OTHERMESH
// RUN: not braid-opt %t/taken.mlir --braid-apply-strategy="mesh=tp=2" 2>&1 | FileCheck %s --check-prefix=TAKEN

// RUN: not braid-opt %t/partitioned.mlir --braid-apply-strategy="mesh=tp=2" 2>&1 | FileCheck %s --check-prefix=PARTITIONED
// UNKNOWN: error: mesh 'dp=2,pp=2' has unknown axis 'pp', expects dp or tp
// MALFORMED: error: mesh 'dp2' expects AXIS=SIZE separated by commas, got 'dp2'
// NUMBER: error: mesh 'tp=x' expects AXIS=SIZE separated by commas, got 'tp=x'
// EMPTY: error: mesh 'tp=2,,' expects AXIS=SIZE separated by commas, got ''
// ZERO: error: mesh 'tp=0' expects a size of at least 1 for axis 'tp', got 0
// TWICE: error: mesh 'tp=2,tp=2' names axis 'tp' twice
// HUGE: error: mesh 'tp=99999999999999999999' expects AXIS=SIZE separated by commas, got 'tp=99999999999999999999'
// LACKS: error: 'comm.mesh' op has no axis 'dp' for strategy 'dp'
// STRATEGY: error: strategy 'zero' expects auto, none or a list of tp, tp-sp, vocab, dp, fsdp, got 'zero'
// BOTH: error: strategy 'tp,tp-sp' expects one way to split the layers, got 'tp' and 'tp-sp'
// VOCABULARY: error: strategy 'vocab' finds no vocabulary to shard over 'tp': expects an nn.embedding of role 'embedding.word' or an nn.linear of role 'lm_head'
// NONE: error: strategy '' expects auto, none or a list of tp, tp-sp, vocab, dp, fsdp, got ''
// SEQUENCE: remark: {{.*}}role 'mlp.down': a sequence of 6 does not divide over 'tp' of size 4 and stays replicated
// RANK: error: {{.*}}'nn.linear' op role 'mlp.down': strategy 'tp-sp' expects a result [batch, sequence, hidden], got 'tensor<8x16xf32>'
// WEIGHT: error: {{.*}}'nn.linear' op 'encoder.up': role 'mlp.up': dimension 'out' of size 16 does not divide over axis 'tp' of size 5
// BATCH: error: 'func.func' op operand 'hidden': dimension 0 of size 4 does not divide over axis 'dp' of size 3
// NOROLE: error: strategy 'auto' finds no nn.linear to shard over 'tp': expects one of a known role (attention.query, attention.key, attention.value, attention.output, mlp.gate, mlp.up, mlp.down), or two of which the second depends on the first elementwise or headwise
// OTHERMESH: error: 'comm.mesh' op of the module is not the mesh 'tp=2' that was asked for
// PARTITIONED: error: 'func.func' op is partitioned already
// TAKEN: error: 'func.func' op has the name 'mesh' that the mesh is to get

//--- mlp.mlir
func.func @main(%x: tensor<4x8x16xf32> {nn.name = "hidden"}) -> (tensor<4x8x16xf32> {nn.name = "out"}) attributes {nn.entry} {
  %w = nn.parameter "up" : tensor<16x16xf32>
  %0 = nn.linear %x, %w role "mlp.up" : tensor<4x8x16xf32>, tensor<16x16xf32> -> tensor<4x8x16xf32> loc("encoder.up")
  return %0 : tensor<4x8x16xf32>
}
//--- sequence.mlir
func.func @main(%x: tensor<4x6x16xf32>) -> tensor<4x6x16xf32> {
  %w = nn.parameter "down" : tensor<16x16xf32>
  %0 = nn.linear %x, %w role "mlp.down" : tensor<4x6x16xf32>, tensor<16x16xf32> -> tensor<4x6x16xf32> loc("encoder.down")
  return %0 : tensor<4x6x16xf32>
}
//--- rank.mlir
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %w = nn.parameter "down" : tensor<16x16xf32>
  %0 = nn.linear %x, %w role "mlp.down" : tensor<8x16xf32>, tensor<16x16xf32> -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
//--- no-role.mlir
func.func @main(%x: tensor<4x8x16xf32>, %w: tensor<16x16xf32>) -> tensor<4x8x16xf32> {
  %0 = nn.linear %x, %w : tensor<4x8x16xf32>, tensor<16x16xf32> -> tensor<4x8x16xf32>
  return %0 : tensor<4x8x16xf32>
}
//--- other-mesh.mlir
comm.mesh @grid <tp = 4>
//--- taken.mlir
func.func private @mesh()
//--- partitioned.mlir
comm.mesh @mesh <tp = 2>
func.func @main(%x: tensor<4x8xf32> {comm.global_type = tensor<8x8xf32>, comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>}) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}
