// RUN: braid-opt %s -braid-cpu-lower-kernels -canonicalize -cse -split-input-file | FileCheck %s
// RUN: braid-opt %s -braid-cpu-lower-kernels="vector-width=4 accumulators=1" -canonicalize -cse -split-input-file | FileCheck %s --check-prefix=NARROW

#rc = affine_map<(r, c) -> (r, c)>
#r = affine_map<(r, c) -> (r)>

// A mask handles columns that do not fill a vector; the results of elementwise operations do not become tensors.
// CHECK-LABEL: func.func @twice_scaled(
// CHECK-SAME:    %[[X:.*]]: memref<?x35xf32, strided<[?, 1], offset: ?>>, %[[W:.*]]: memref<35xf32, strided<[1], offset: ?>>,
// CHECK-SAME:    %[[OUT:.*]]: memref<?x35xf32, strided<[?, 1], offset: ?>>) {
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[C16:.*]] = arith.constant 16 : index
// CHECK-DAG:     %[[C32:.*]] = arith.constant 32 : index
// CHECK:         %[[ROWS:.*]] = memref.dim %[[OUT]], %[[C0]]
// CHECK:         scf.for %[[ROW:.*]] = %[[C0]] to %[[ROWS]]
// CHECK:           scf.for %[[COL:.*]] = %[[C0]] to %[[C32]] step %[[C16]] {
// CHECK:             %[[A:.*]] = vector.load %[[X]][%[[ROW]], %[[COL]]] : {{.*}}, vector<16xf32>
// CHECK:             %[[T:.*]] = arith.addf %[[A]], %[[A]] : vector<16xf32>
// CHECK:             %[[B:.*]] = vector.load %[[W]][%[[COL]]] : {{.*}}, vector<16xf32>
// CHECK:             %[[Y:.*]] = arith.mulf %[[T]], %[[B]] fastmath<contract> : vector<16xf32>
// CHECK:             vector.store %[[Y]], %[[OUT]][%[[ROW]], %[[COL]]]
// CHECK:           }
// CHECK:           %[[MASK:.*]] = vector.constant_mask [3] : vector<16xi1>
// CHECK:           vector.maskedload %[[X]][%[[ROW]], %[[C32]]], %[[MASK]]
// CHECK:           vector.maskedstore %[[OUT]][%[[ROW]], %[[C32]]], %[[MASK]]
// NARROW-LABEL: func.func @twice_scaled(
// NARROW:         vector.load {{.*}} vector<4xf32>
// NARROW:         vector.constant_mask [3] : vector<4xi1>
rt.kernel @twice_scaled(%x: tensor<?x35xf32>, %w: tensor<35xf32>) -> tensor<?x35xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x35xf32>
  %e = tensor.empty(%n) : tensor<?x35xf32>
  %0 = linalg.generic {indexing_maps = [#rc, #rc], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x35xf32>) outs(%e : tensor<?x35xf32>) {
    ^bb0(%a: f32, %o: f32):
      %2 = arith.addf %a, %a : f32
      linalg.yield %2 : f32
  } -> tensor<?x35xf32>
  %1 = linalg.generic {indexing_maps = [#rc, affine_map<(r, c) -> (c)>, #rc], iterator_types = ["parallel", "parallel"]}
      ins(%0, %w : tensor<?x35xf32>, tensor<35xf32>) outs(%e : tensor<?x35xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %2 = arith.mulf %a, %b fastmath<contract> : f32
      linalg.yield %2 : f32
  } -> tensor<?x35xf32>
  rt.yield %1 : tensor<?x35xf32>
}

// -----

#rc = affine_map<(r, c) -> (r, c)>
#r = affine_map<(r, c) -> (r)>

// Two sweeps over the row: the exponentials are stored between them. Sums use two vectors, which are then reduced to a scalar.
// CHECK-LABEL: func.func @normalized_exp(
// CHECK-SAME:    %[[X:[a-z0-9]*]]: memref
// CHECK-SAME:    %[[OUT:[a-z0-9]*]]: memref
// CHECK-DAG:     %[[ZEROS:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK:         %[[BUFFER:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64xf32>
// CHECK:         scf.for
// CHECK:           %[[SUMS:.*]]:2 = scf.for {{.*}} iter_args(%[[S0:.*]] = %[[ZEROS]], %[[S1:.*]] = %[[ZEROS]]) -> (vector<16xf32>, vector<16xf32>)
// CHECK:             %[[E0:.*]] = math.exp %{{.*}} : vector<16xf32>
// CHECK:             %[[N0:.*]] = arith.addf %[[S0]], %[[E0]] : vector<16xf32>
// CHECK:             vector.store %[[E0]], %[[BUFFER]]
// CHECK:             %[[E1:.*]] = math.exp %{{.*}} : vector<16xf32>
// CHECK:             %[[N1:.*]] = arith.addf %[[S1]], %[[E1]] : vector<16xf32>
// CHECK:             scf.yield %[[N0]], %[[N1]]
// CHECK:           %[[S16:.*]] = arith.addf %[[SUMS]]#0, %[[SUMS]]#1 : vector<16xf32>
// CHECK-COUNT-4:   arith.addf {{.*}} : vector<{{8|4|2|1}}xf32>
// CHECK:           %[[S:.*]] = vector.extract %{{.*}}[0] : f32 from vector<1xf32>
// CHECK:           %[[ALL:.*]] = vector.broadcast %[[S]] : f32 to vector<16xf32>
// CHECK:           scf.for
// CHECK-NOT:         math.exp
// CHECK:             %[[E:.*]] = vector.load %[[BUFFER]]
// CHECK:             %[[Y:.*]] = arith.divf %[[E]], %[[ALL]]
// CHECK:             vector.store %[[Y]], %[[OUT]]
// NARROW-LABEL: func.func @normalized_exp(
// NARROW:         scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (vector<4xf32>)
rt.kernel @normalized_exp(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%n) : tensor<?x64xf32>
  %er = tensor.empty(%n) : tensor<?xf32>
  %exp = linalg.generic {indexing_maps = [#rc, #rc], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
    ^bb0(%a: f32, %o: f32):
      %0 = math.exp %a : f32
      linalg.yield %0 : f32
  } -> tensor<?x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%er : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#rc, #r], iterator_types = ["parallel", "reduction"]}
      ins(%exp : tensor<?x64xf32>) outs(%init : tensor<?xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %0 = arith.addf %acc, %a : f32
      linalg.yield %0 : f32
  } -> tensor<?xf32>
  %out = linalg.generic {indexing_maps = [#rc, #r, #rc], iterator_types = ["parallel", "parallel"]}
      ins(%exp, %sum : tensor<?x64xf32>, tensor<?xf32>) outs(%e : tensor<?x64xf32>) {
    ^bb0(%a: f32, %s: f32, %o: f32):
      %0 = arith.divf %a, %s : f32
      linalg.yield %0 : f32
  } -> tensor<?x64xf32>
  rt.yield %out : tensor<?x64xf32>
}

// -----

#full = affine_map<(b, r, c) -> (b, r, c)>

// There is one loop per row dimension; an operand without the outermost dimension is indexed by the others. The column's index
// is a vector. A row narrower than a vector uses a narrower vector.
// CHECK-LABEL: func.func @two_row_dims(
// CHECK-SAME:    %[[X:.*]]: memref<?x3x8xf32, strided<[?, ?, 1], offset: ?>>, %[[T:.*]]: memref<3x8xf32, strided<[?, 1], offset: ?>>,
// CHECK:         scf.for %[[B:.*]] =
// CHECK:           scf.for %[[R:.*]] =
// CHECK-DAG:         vector.load %[[X]][%[[B]], %[[R]], %{{.*}}] : {{.*}}, vector<8xf32>
// CHECK-DAG:         vector.load %[[T]][%[[R]], %{{.*}}] : {{.*}}, vector<8xf32>
// CHECK-DAG:         %[[LANES:.*]] = vector.step : vector<8xindex>
// CHECK:             arith.index_cast %{{.*}} : vector<8xindex> to vector<8xi32>
rt.kernel @two_row_dims(%x: tensor<?x3x8xf32>, %t: tensor<3x8xf32>) -> tensor<?x3x8xf32> attributes {row_dims = 2 : i64} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x3x8xf32>
  %e = tensor.empty(%n) : tensor<?x3x8xf32>
  %0 = linalg.generic {indexing_maps = [#full, affine_map<(b, r, c) -> (r, c)>, #full],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %t : tensor<?x3x8xf32>, tensor<3x8xf32>) outs(%e : tensor<?x3x8xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %i = linalg.index 2 : index
      %k = arith.index_cast %i : index to i32
      %f = arith.sitofp %k : i32 to f32
      %1 = arith.addf %a, %b : f32
      %2 = arith.mulf %1, %f : f32
      linalg.yield %2 : f32
  } -> tensor<?x3x8xf32>
  rt.yield %0 : tensor<?x3x8xf32>
}
