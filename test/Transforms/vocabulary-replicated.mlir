// By default a vocabulary that the axis does not divide and that is not padded (pad-vocabulary.mlir) stays replicated, with a
// remark. Requesting to shard it is an error.
// RUN: braid-opt %s --braid-apply-strategy="mesh=tp=3" --remark-format=emitRemark --remarks-filter=sharding -o %t 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: FileCheck %s < %t
// RUN: not braid-opt %s --braid-apply-strategy="mesh=tp=3 strategy=tp,vocab" 2>&1 | FileCheck %s --check-prefix=ERROR

// REMARK: remark: {{.*}}a vocabulary of 32 does not divide over 'tp' of size 3 and stays replicated
// ERROR: error: {{.*}}'nn.embedding' op role 'embedding.word': dimension 'vocab' of size 32 does not divide over axis 'tp' of size 3

// CHECK: nn.parameter "words" : tensor<32x6xf32>
// CHECK: nn.parameter "up" {comm.shardings = [#comm.sharding<@mesh, [{tp}, {}]>]} : tensor<12x6xf32>
func.func @main(%ids: tensor<2x8xi64> {nn.name = "input_ids"}) -> (tensor<2x8x32xf32> {nn.name = "logits"}) attributes {nn.entry} {
  %words = nn.parameter "words" : tensor<32x6xf32>
  %up = nn.parameter "up" : tensor<12x6xf32>
  %down = nn.parameter "down" : tensor<6x12xf32>
  %0 = nn.embedding %ids, %words role "embedding.word" : tensor<2x8xi64>, tensor<32x6xf32> -> tensor<2x8x6xf32>
  %1 = nn.linear %0, %up role "mlp.up" : tensor<2x8x6xf32>, tensor<12x6xf32> -> tensor<2x8x12xf32>
  %2 = nn.linear %1, %down role "mlp.down" : tensor<2x8x12xf32>, tensor<6x12xf32> -> tensor<2x8x6xf32>
  %3 = nn.linear %2, %words role "lm_head" : tensor<2x8x6xf32>, tensor<32x6xf32> -> tensor<2x8x32xf32>
  return %3 : tensor<2x8x32xf32>
}
