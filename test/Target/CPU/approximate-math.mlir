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

// One polynomial over another, for all arguments: what exceeds 1 is cut, and nothing selects coefficients.
// CHECK-LABEL: func.func @erf
// CHECK-SAME: (%[[X:.*]]: vector<8xf32>)
func.func @erf(%x: vector<8xf32>) -> vector<8xf32> {
  // CHECK-DAG: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : vector<8xf32>
  // CHECK-DAG: %[[MINUS:.*]] = arith.constant dense<-1.000000e+00> : vector<8xf32>
  // CHECK: %[[SQUARE:.*]] = arith.mulf %[[X]], %[[X]]
  // CHECK: arith.cmpf ogt, %[[SQUARE]]
  // CHECK-NEXT: %[[U:.*]] = arith.select
  // CHECK-COUNT-10: math.fma %{{.*}}, %[[U]]
  // CHECK-NOT: math.fma
  // CHECK: %[[Q:.*]] = arith.divf
  // CHECK: arith.cmpf ogt, %[[Q]], %[[ONE]]
  // CHECK-NEXT: %[[TOP:.*]] = arith.select %{{.*}}, %[[ONE]], %[[Q]]
  // CHECK: arith.cmpf olt, %[[TOP]], %[[MINUS]]
  // CHECK-NEXT: %[[R:.*]] = arith.select %{{.*}}, %[[MINUS]], %[[TOP]]
  // CHECK: return %[[R]]
  %0 = math.erf %x : vector<8xf32>
  return %0 : vector<8xf32>
}
