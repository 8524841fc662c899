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
