// RUN: braid-test-compile-kernels %s -emit-cuda | FileCheck %s

// Names that are reserved by C++, CUDA, the skeletons or the library are changed.
// CHECK:      {{^}}expf1(const float *__restrict__ while1, long long while1_stride,
// CHECK-NEXT:       float *__restrict__ row1, long long row1_stride,
rt.kernel @expf(%x: tensor<?x8xf32> {rt.name = "while"}) -> (tensor<?x8xf32> {rt.name = "row"}) {
  rt.yield %x : tensor<?x8xf32>
}
// CHECK: {{^}}vbraid_copy(const float *__restrict__ norm_2,
rt.kernel @braid_copy(%x: tensor<?x8xf32> {rt.name = "layers.0.norm#2"}) -> tensor<?x8xf32> {
  rt.yield %x : tensor<?x8xf32>
}
