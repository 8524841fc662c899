// A vocabulary that the axis does not divide: table and head get rows of zeros that are never looked up, and the padding is
// removed from the entry's logits.
// RUN: split-file %s %t
// RUN: braid-opt %t/tied.mlir --braid-pad-for-strategy="mesh=tp=3 strategy=tp,vocab" --remark-format=emitRemark --remarks-filter=padding -o %t/out 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: FileCheck %s --check-prefix=TIED < %t/out
// RUN: braid-opt %t/tied.mlir --braid-pad-for-strategy="mesh=tp=3" | diff %t/out -
// The strategy does not shard the vocabulary, or the axis divides it.
// RUN: braid-opt %t/tied.mlir > %t/before
// RUN: braid-opt %t/tied.mlir --braid-pad-for-strategy="mesh=tp=3 strategy=tp" | diff %t/before -
// RUN: braid-opt %t/tied.mlir --braid-pad-for-strategy="mesh=tp=4 strategy=tp,vocab" | diff %t/before -
// RUN: braid-opt %t/tied.mlir --braid-pad-for-strategy="mesh=tp=3 strategy=tp,vocab" --braid-apply-strategy="mesh=tp=3 strategy=tp,vocab" --braid-propagate-shardings --braid-partition --canonicalize --cse | FileCheck %s --check-prefix=SHARD
// RUN: braid-opt %t/bias.mlir --braid-pad-for-strategy="mesh=tp=3 strategy=vocab" | FileCheck %s --check-prefix=BIAS
// Equal results. On eight ranks some ranks have only padding.
// RUN: braid-opt %t/tied.mlir --test-equivalence="pipeline=builtin.module(braid-pad-for-strategy{mesh=tp=3 strategy=tp,vocab},braid-apply-strategy{mesh=tp=3 strategy=tp,vocab},braid-propagate-shardings,braid-partition,cse) seed=3" | FileCheck %s --check-prefix=THREE
// RUN: braid-opt %t/bias.mlir --test-equivalence="pipeline=builtin.module(braid-pad-for-strategy{mesh=tp=8 strategy=vocab},braid-apply-strategy{mesh=tp=8 strategy=vocab},braid-propagate-shardings,braid-partition,cse) seed=4" | FileCheck %s --check-prefix=EIGHT
// With auto, the table is replicated without a head; both are replicated if logits are not the result, with a remark.
// RUN: braid-opt %t/no-head.mlir --braid-pad-for-strategy="mesh=tp=3" | FileCheck %s --check-prefix=NOHEAD
// RUN: braid-opt %t/loss.mlir --braid-pad-for-strategy="mesh=tp=3" --remark-format=emitRemark --remarks-filter=padding -o %t/loss.out 2>&1 | FileCheck %s --check-prefix=LOSS
// RUN: braid-opt %t/loss.mlir | diff - %t/loss.out
// RUN: braid-opt %t/loss.mlir --test-equivalence="pipeline=builtin.module(braid-pad-for-strategy{mesh=tp=3},braid-apply-strategy{mesh=tp=3},braid-propagate-shardings,braid-partition,cse) seed=5" | FileCheck %s --check-prefix=THREE

// THREE: equivalent on 1 and 3 ranks
// EIGHT: equivalent on 1 and 8 ranks

// REMARK: remark: {{.*}}a vocabulary of 32 of 'embedding.word' is padded to 33 for axis 'tp' of size 3: its weights grow from 192 to 198 elements
// REMARK: remark: {{.*}}a vocabulary of 32 of 'lm_head' is padded to 33 for axis 'tp' of size 3: its weights grow from 192 to 198 elements

// TIED: func.func @main({{.*}}) -> (tensor<2x8x33xf32> {nn.name = "logits", nn.unpadded = tensor<2x8x32xf32>})
// TIED: %[[WORDS:.*]] = nn.parameter "words" slices ["words"[32, 6]] : tensor<33x6xf32>
// TIED-NOT: nn.parameter "words"
// TIED: nn.embedding %{{.*}}, %[[WORDS]] rows 32 role "embedding.word" : tensor<2x8xi64>, tensor<33x6xf32> -> tensor<2x8x6xf32>
// TIED: nn.linear %{{.*}}, %[[WORDS]] role "lm_head" : tensor<2x8x6xf32>, tensor<33x6xf32> -> tensor<2x8x33xf32>

// SHARD: -> (tensor<2x8x11xf32> {comm.global_type = tensor<2x8x33xf32>, comm.sharding = #comm.sharding<@mesh, [{}, {}, {tp}]>, nn.name = "logits", nn.unpadded = tensor<2x8x32xf32>})
// SHARD: %[[SHARD:.*]] = nn.parameter "words" slices ["words"[32, 6]] of tensor<33x6xf32> sharded <@mesh, [{tp}, {}]> : tensor<11x6xf32>
// SHARD: nn.embedding %{{.*}}, %[[SHARD]] rows 32 over <@mesh, {tp}> role "embedding.word"
// SHARD: nn.linear %{{.*}}, %[[SHARD]] role "lm_head" : tensor<2x8x6xf32>, tensor<11x6xf32> -> tensor<2x8x11xf32>

// The bias and elementwise operations on the logits are padded too.
// BIAS: -> (tensor<2x8x7xf32> {nn.name = "same"}, tensor<2x8x9xf32> {nn.name = "logits", nn.unpadded = tensor<2x8x7xf32>})
// BIAS: nn.parameter "b" slices ["b"[7]] : tensor<9xf32>
// BIAS: nn.linear {{.*}} role "lm_head" : {{.*}} -> tensor<2x8x9xf32>
// BIAS: nn.activation gelu %{{.*}} : tensor<2x8x9xf32>

// NOHEAD: nn.parameter "words" : tensor<32x6xf32>
// LOSS: remark: {{.*}}a vocabulary of 32 cannot be padded for axis 'tp' of size 3: logits go into an operation that would see the padding

//--- tied.mlir
func.func @main(%ids: tensor<2x8xi64> {nn.name = "input_ids", test.range = array<i64: 0, 32>}) -> (tensor<2x8x32xf32> {nn.name = "logits"}) attributes {nn.entry} {
  %words = nn.parameter "words" : tensor<32x6xf32>
  %up = nn.parameter "up" : tensor<12x6xf32>
  %down = nn.parameter "down" : tensor<6x12xf32>
  %0 = nn.embedding %ids, %words role "embedding.word" : tensor<2x8xi64>, tensor<32x6xf32> -> tensor<2x8x6xf32>
  %1 = nn.linear %0, %up role "mlp.up" : tensor<2x8x6xf32>, tensor<12x6xf32> -> tensor<2x8x12xf32>
  %2 = nn.linear %1, %down role "mlp.down" : tensor<2x8x12xf32>, tensor<6x12xf32> -> tensor<2x8x6xf32>
  %3 = nn.linear %2, %words role "lm_head" : tensor<2x8x6xf32>, tensor<32x6xf32> -> tensor<2x8x32xf32>
  return %3 : tensor<2x8x32xf32>
}
//--- bias.mlir
func.func @main(%x: tensor<2x8x7xf32> {nn.name = "x"}, %ids: tensor<2x8xi64> {nn.name = "input_ids", test.range = array<i64: 0, 5>}) -> (tensor<2x8x7xf32> {nn.name = "same"}, tensor<2x8x7xf32> {nn.name = "logits"}) attributes {nn.entry} {
  %words = nn.parameter "words" : tensor<5x6xf32>
  %w = nn.parameter "w" : tensor<7x6xf32>
  %b = nn.parameter "b" : tensor<7xf32>
  %0 = nn.embedding %ids, %words role "embedding.word" : tensor<2x8xi64>, tensor<5x6xf32> -> tensor<2x8x6xf32>
  %p1 = nn.linear %0, %w role "lm_head" : tensor<2x8x6xf32>, tensor<7x6xf32> -> tensor<2x8x7xf32>
  %1 = nn.add %p1, %b : tensor<2x8x7xf32>, tensor<7xf32> -> tensor<2x8x7xf32>
  %2 = nn.activation gelu %1 : tensor<2x8x7xf32>
  %3 = nn.add %2, %1 : tensor<2x8x7xf32>, tensor<2x8x7xf32> -> tensor<2x8x7xf32>
  return %x, %3 : tensor<2x8x7xf32>, tensor<2x8x7xf32>
}
//--- no-head.mlir
func.func @main(%ids: tensor<2x8xi64> {nn.name = "input_ids"}) -> (tensor<2x8x6xf32> {nn.name = "hidden"}) attributes {nn.entry} {
  %words = nn.parameter "words" : tensor<32x6xf32>
  %0 = nn.embedding %ids, %words role "embedding.word" : tensor<2x8xi64>, tensor<32x6xf32> -> tensor<2x8x6xf32>
  return %0 : tensor<2x8x6xf32>
}
//--- loss.mlir
func.func @main(%ids: tensor<2x8xi64> {nn.name = "input_ids", test.range = array<i64: 0, 32>}) -> (tensor<2x8xf32> {nn.name = "loss"}) attributes {nn.entry} {
  %words = nn.parameter "words" : tensor<32x6xf32>
  %up = nn.parameter "up" : tensor<12x6xf32>
  %down = nn.parameter "down" : tensor<6x12xf32>
  %0 = nn.embedding %ids, %words role "embedding.word" : tensor<2x8xi64>, tensor<32x6xf32> -> tensor<2x8x6xf32>
  %1 = nn.linear %0, %up role "mlp.up" : tensor<2x8x6xf32>, tensor<12x6xf32> -> tensor<2x8x12xf32>
  %2 = nn.linear %1, %down role "mlp.down" : tensor<2x8x12xf32>, tensor<6x12xf32> -> tensor<2x8x6xf32>
  %3 = nn.linear %2, %words role "lm_head" : tensor<2x8x6xf32>, tensor<32x6xf32> -> tensor<2x8x32xf32>
  %4 = nn.cross_entropy %3, %ids : tensor<2x8x32xf32>, tensor<2x8xi64> -> tensor<2x8xf32>
  return %4 : tensor<2x8xf32>
}
