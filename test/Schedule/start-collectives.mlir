// RUN: braid-opt %s --braid-start-collectives --split-input-file | FileCheck %s
// RUN: braid-opt %S/../Transforms/Inputs/bert-4-layers.mlir --braid-apply-strategy="mesh=dp=2,tp=2" --braid-propagate-shardings --braid-partition --braid-start-collectives --braid-verify-level=level=scheduled | FileCheck %s --check-prefix=BERT

// The reduction is in flight during both gelus; its wait comes before the first use.
comm.mesh @mesh <tp = 2>

// CHECK-LABEL: func.func @overlap
// CHECK-SAME: (%[[X:.*]]: tensor<8x4xf32>)
func.func @overlap(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK-NEXT: %[[H:.*]] = comm.start (%[[A:.*]] = %[[X]]) : tensor<8x4xf32> -> !comm.handle<tensor<8x4xf32>> {
  // CHECK-NEXT:   %[[R:.*]] = comm.all_reduce sum(%[[A]]) over <@mesh, {tp}> role "mlp.down" : tensor<8x4xf32>
  // CHECK-NEXT:   comm.yield %[[R]] : tensor<8x4xf32>
  // CHECK-NEXT: }
  // CHECK-NEXT: %[[G:.*]] = nn.activation gelu %[[X]]
  // CHECK-NEXT: %[[GG:.*]] = nn.activation gelu %[[G]]
  // CHECK-NEXT: %[[Y:.*]] = comm.wait %[[H]] keeping %[[X]] : !comm.handle<tensor<8x4xf32>>, tensor<8x4xf32> -> tensor<8x4xf32>
  // CHECK-NEXT: nn.add %[[Y]], %[[GG]]
  %a = nn.activation gelu %x : tensor<8x4xf32>
  %b = comm.all_reduce sum(%x) over <@mesh, {tp}> role "mlp.down" : tensor<8x4xf32>
  %c = nn.activation gelu %a : tensor<8x4xf32>
  %d = nn.add %b, %c : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
  return %d : tensor<8x4xf32>
}

// Starts keep their order, although the second one's operand is ready first; a start may move above another's wait.
// CHECK-LABEL: func.func @order
// CHECK-SAME: (%[[X:.*]]: tensor<8x4xf32>, %[[Y:.*]]: tensor<8x4xf32>)
func.func @order(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4x4xf32>) {
  // CHECK-NEXT: %[[A:.*]] = nn.activation gelu %[[X]]
  // CHECK-NEXT: %[[H1:.*]] = comm.start (%{{.*}} = %[[A]])
  // CHECK:      %[[H2:.*]] = comm.start (%{{.*}} = %[[Y]])
  // CHECK:      %[[B:.*]] = comm.wait %[[H1]] keeping %[[A]]
  // CHECK-NEXT: %[[C:.*]] = nn.activation gelu %[[B]]
  // CHECK-NEXT: %[[D:.*]] = comm.wait %[[H2]] keeping %[[Y]]
  // CHECK-NEXT: return %[[C]], %[[D]]
  %a = nn.activation gelu %x : tensor<8x4xf32>
  %b = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<8x4xf32>
  %c = nn.activation gelu %b : tensor<8x4xf32>
  %d = comm.reduce_scatter sum(%y) dim 0 over <@mesh, {tp}> : tensor<8x4xf32> -> tensor<4x4xf32>
  return %c, %d : tensor<8x4xf32>, tensor<4x4xf32>
}

// A collective that needs another's result starts after its wait.
// CHECK-LABEL: func.func @chain
func.func @chain(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK: %[[H1:.*]] = comm.start
  // CHECK: %[[B:.*]] = comm.wait %[[H1]]
  // CHECK-NEXT: %[[H2:.*]] = comm.start (%{{.*}} = %[[B]])
  // CHECK: %[[C:.*]] = comm.wait %[[H2]] keeping %[[B]]
  // CHECK-NEXT: return %[[C]]
  %b = comm.reduce_scatter sum(%x) dim 0 over <@mesh, {tp}> : tensor<8x4xf32> -> tensor<4x4xf32>
  %c = comm.all_gather(%b) dim 0 over <@mesh, {tp}> : tensor<4x4xf32> -> tensor<8x4xf32>
  return %c : tensor<8x4xf32>
}

// A call of a function that communicates keeps its position among the starts; a call of another function does not. The wait
// moves below both: a collective in flight across a call belongs to the caller.
// CHECK-LABEL: func.func @calls
// CHECK-SAME: (%[[X:.*]]: tensor<8x4xf32>)
func.func @calls(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK-NEXT: %[[A:.*]] = call @chain(%[[X]])
  // CHECK-NEXT: %[[H:.*]] = comm.start (%{{.*}} = %[[X]])
  // CHECK:      %[[B:.*]] = call @quiet(%[[A]])
  // CHECK-NEXT: %[[C:.*]] = call @chain(%[[B]])
  // CHECK-NEXT: %[[D:.*]] = comm.wait %[[H]] keeping %[[X]]
  // CHECK-NEXT: nn.add %[[C]], %[[D]]
  %a = call @chain(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %b = call @quiet(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %d = comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<8x4xf32>
  %c = call @chain(%b) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %e = nn.add %c, %d : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
  return %e : tensor<8x4xf32>
}
func.func private @quiet(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %a = nn.activation gelu %x : tensor<8x4xf32>
  return %a : tensor<8x4xf32>
}

// Several values of one collective have one wait, before the first use of any of them.
// CHECK-LABEL: func.func @variadic
func.func @variadic(%x: tensor<8x4xf32>, %y: tensor<2xf32>) -> (tensor<8x4xf32>, tensor<2xf32>) {
  // CHECK: %[[H:.*]] = comm.start (%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) : tensor<8x4xf32>, tensor<2xf32> -> !comm.handle<tensor<8x4xf32>, tensor<2xf32>> {
  // CHECK: nn.activation gelu %{{.*}} : tensor<8x4xf32>
  // CHECK-NEXT: %[[W:.*]]:2 = comm.wait %[[H]] keeping
  // CHECK-NEXT: nn.activation gelu %[[W]]#1 : tensor<2xf32>
  // CHECK-NEXT: return %[[W]]#0
  %0:2 = comm.all_reduce sum(%x, %y) over <@mesh, {tp}> : tensor<8x4xf32>, tensor<2xf32>
  %1 = nn.activation gelu %x : tensor<8x4xf32>
  %2 = nn.activation gelu %0#1 : tensor<2xf32>
  return %0#0, %2 : tensor<8x4xf32>, tensor<2xf32>
}

// A collective in a loop stays in its block.
// CHECK-LABEL: func.func @loop
func.func @loop(%x: tensor<8x4xf32>, %n: index) -> tensor<8x4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // CHECK: scf.for
  // CHECK-NEXT: comm.start
  // CHECK: comm.wait
  // CHECK-NEXT: scf.yield
  %r = scf.for %i = %zero to %n step %one iter_args(%v = %x) -> tensor<8x4xf32> {
    %a = comm.all_reduce sum(%v) over <@mesh, {tp}> : tensor<8x4xf32>
    scf.yield %a : tensor<8x4xf32>
  }
  return %r : tensor<8x4xf32>
}

// BERT-LABEL: func.func private @layer
// BERT: nn.linear {{.*}} role "attention.output"
// BERT-NEXT: comm.start
// BERT-NEXT: comm.all_reduce sum({{.*}}) over <@mesh, {tp}> role "attention.output"
// BERT: comm.wait
// BERT: nn.linear {{.*}} role "mlp.down"
// BERT-NEXT: comm.start
// BERT-NEXT: comm.all_reduce sum({{.*}}) over <@mesh, {tp}> role "mlp.down"
// BERT: comm.wait
// BERT-NOT: {{= comm\.}}
