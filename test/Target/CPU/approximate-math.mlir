// RUN: braid-opt %s -braid-cpu-approximate-math | FileCheck %s

// CHECK-LABEL: func.func @transcendental
// CHECK-NOT: math.{{erf|exp|tanh|log}}
// CHECK: math.fma {{.*}} : vector<16xf32>
// CHECK-NOT: math.{{erf|exp|tanh|log}}
// CHECK: math.sqrt %{{.*}} : f32
// CHECK: return
func.func @transcendental(%v: vector<16xf32>, %s: f32) -> (vector<16xf32>, f32) {
  %0 = math.erf %v : vector<16xf32>
  %1 = math.exp %0 : vector<16xf32>
  %2 = math.tanh %1 : vector<16xf32>
  %3 = math.log %2 : vector<16xf32>
  %4 = math.sqrt %s : f32
  return %3, %4 : vector<16xf32>, f32
}

// Near 0 it is a polynomial of the square, elsewhere one to the power of -16, so that no quotient is near 1. A NaN fails both
// comparisons.
// CHECK-LABEL: func.func @erf
// CHECK-SAME: (%[[X:.*]]: vector<8xf32>)
func.func @erf(%x: vector<8xf32>) -> vector<8xf32> {
  // CHECK-DAG: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : vector<8xf32>
  // CHECK-DAG: %[[LIMIT:.*]] = arith.constant dense<4.000000e+00> : vector<8xf32>
  // CHECK-DAG: %[[BOUND:.*]] = arith.constant dense<1.250000e+00> : vector<8xf32>
  // CHECK: %[[SQUARE:.*]] = arith.mulf %[[X]], %[[X]]
  // CHECK-COUNT-6: math.fma %{{.*}}, %[[SQUARE]]
  // CHECK-NOT: math.fma
  // CHECK: %[[NEAR:.*]] = arith.mulf %[[X]], %{{.*}}
  // CHECK: %[[MAGNITUDE:.*]] = math.absf %[[X]]
  // CHECK: arith.cmpf ogt, %[[MAGNITUDE]], %[[LIMIT]]
  // CHECK-NEXT: %[[U:.*]] = arith.select %{{.*}}, %[[LIMIT]], %[[MAGNITUDE]]
  // CHECK-COUNT-6: math.fma %{{.*}}, %[[U]]
  // CHECK-NOT: math.fma
  // CHECK-COUNT-4: arith.mulf
  // CHECK: %[[Q:.*]] = arith.divf %[[ONE]]
  // CHECK: %[[FAR:.*]] = arith.subf %[[ONE]], %[[Q]]
  // CHECK: %[[SIGNED:.*]] = math.copysign %[[FAR]], %[[X]]
  // CHECK: %[[IS_NEAR:.*]] = arith.cmpf olt, %[[MAGNITUDE]], %[[BOUND]]
  // CHECK: %[[R:.*]] = arith.select %[[IS_NEAR]], %[[NEAR]], %[[SIGNED]]
  // CHECK: return %[[R]]
  %0 = math.erf %x : vector<8xf32>
  return %0 : vector<8xf32>
}
