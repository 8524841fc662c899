// RUN: braid-opt %s --test-channel-maxima -o %t 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: FileCheck %s --input-file %t
// The two calls share their weights, and the second product's channels are those of its factor.
// REMARK: remark: channel_maxima.0: @layer (first) before 'up': a weight is no parameter, or has other users
// REMARK: remark: channel_maxima.1: @layer (first) before 'down': a weight is no parameter, or has other users
// REMARK: remark: channel_maxima.2: @layer (second) before 'up': a weight is no parameter, or has other users
// REMARK: remark: channel_maxima.3: @layer (second) before 'down': a weight is no parameter, or has other users
// REMARK: remark: channel_maxima.4: before 'own': can be smoothed
// REMARK: remark: channel_maxima.5: before 'tied': tensor 'table' has other users

// What a normalization or a product gives to linear operations alone has maxima; other values have none.
// CHECK-LABEL: func.func private @layer(
// CHECK-SAME: -> (tensor<2x4x64xf32>, tensor<64xf32>, tensor<32xf32>)
func.func private @layer(%x: tensor<2x4x64xf32>, %s: tensor<64xf32>, %g: tensor<32x64xf32>, %u: tensor<32x64xf32>, %b: tensor<32xf32>, %d: tensor<64x32xf32>) -> tensor<2x4x64xf32> {
  // CHECK: %[[N:.*]] = nn.rms_norm
  // CHECK-NEXT: %[[A:.*]] = nn.map %[[N]]
  // CHECK: math.absf
  // CHECK: %[[M:.*]] = nn.reduce max %[[A]] dims [0, 1] : tensor<2x4x64xf32> -> tensor<64xf32>
  %n = nn.rms_norm %x, %s epsilon 1.0e-5 : tensor<2x4x64xf32>, tensor<64xf32> -> tensor<2x4x64xf32>
  %0 = nn.linear %n, %g role "gate" : tensor<2x4x64xf32>, tensor<32x64xf32> -> tensor<2x4x32xf32>
  %1 = nn.activation silu %0 : tensor<2x4x32xf32>
  %2 = nn.linear %n, %u role "up" : tensor<2x4x64xf32>, tensor<32x64xf32> -> tensor<2x4x32xf32>
  %3 = nn.add %2, %b : tensor<2x4x32xf32>, tensor<32xf32> -> tensor<2x4x32xf32>
  // CHECK: %[[P:.*]] = nn.mul
  // CHECK-NEXT: %[[B:.*]] = nn.map %[[P]]
  // CHECK: %[[O:.*]] = nn.reduce max %[[B]] dims [0, 1] : tensor<2x4x32xf32> -> tensor<32xf32>
  %4 = nn.mul %1, %3 : tensor<2x4x32xf32>, tensor<2x4x32xf32> -> tensor<2x4x32xf32>
  // CHECK: %[[Y:.*]] = nn.linear %[[P]]
  %5 = nn.linear %4, %d role "down" : tensor<2x4x32xf32>, tensor<64x32xf32> -> tensor<2x4x64xf32>
  // CHECK: return %[[Y]], %[[M]], %[[O]]
  return %5 : tensor<2x4x64xf32>
}

// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<64xf32> {nn.name = "channel_maxima.0"}, tensor<32xf32> {nn.name = "channel_maxima.1"}, tensor<64xf32> {nn.name = "channel_maxima.2"}, tensor<32xf32> {nn.name = "channel_maxima.3"}, tensor<64xf32> {nn.name = "channel_maxima.4"}, tensor<64xf32> {nn.name = "channel_maxima.5"})
func.func @main(%x: tensor<2x4x64xf32> {nn.name = "x"}) -> (tensor<2x4x64xf32> {nn.name = "y"}) attributes {nn.entry} {
  %s = nn.parameter "s" : tensor<64xf32>
  %g = nn.parameter "g" : tensor<32x64xf32>
  %u = nn.parameter "u" : tensor<32x64xf32>
  %b = nn.parameter "b" : tensor<32xf32>
  %d = nn.parameter "d" : tensor<64x32xf32>
  // CHECK: %[[R:.*]]:3 = call @layer
  %0 = call @layer(%x, %s, %g, %u, %b, %d) : (tensor<2x4x64xf32>, tensor<64xf32>, tensor<32x64xf32>, tensor<32x64xf32>, tensor<32xf32>, tensor<64x32xf32>) -> tensor<2x4x64xf32> loc("first")
  // CHECK: %[[T:.*]]:3 = call @layer(%[[R]]#0
  %1 = call @layer(%0, %s, %g, %u, %b, %d) : (tensor<2x4x64xf32>, tensor<64xf32>, tensor<32x64xf32>, tensor<32x64xf32>, tensor<32xf32>, tensor<64x32xf32>) -> tensor<2x4x64xf32> loc("second")
  // A residual uses the normalized value too.
  // CHECK: nn.rms_norm
  // CHECK-NOT: nn.map
  // CHECK: nn.linear
  %n = nn.rms_norm %1, %s epsilon 1.0e-5 : tensor<2x4x64xf32>, tensor<64xf32> -> tensor<2x4x64xf32>
  %w = nn.parameter "w" : tensor<64x64xf32>
  %2 = nn.linear %n, %w role "head" : tensor<2x4x64xf32>, tensor<64x64xf32> -> tensor<2x4x64xf32>
  %3 = nn.add %2, %n : tensor<2x4x64xf32>, tensor<2x4x64xf32> -> tensor<2x4x64xf32>
  %o = nn.parameter "o" : tensor<64xf32>
  %p = nn.parameter "p" : tensor<64x64xf32>
  // CHECK: %[[OWN:.*]] = nn.reduce max
  %4 = nn.rms_norm %3, %o epsilon 1.0e-5 : tensor<2x4x64xf32>, tensor<64xf32> -> tensor<2x4x64xf32>
  %5 = nn.linear %4, %p role "own" : tensor<2x4x64xf32>, tensor<64x64xf32> -> tensor<2x4x64xf32>
  %q = nn.parameter "q" : tensor<64xf32>
  %t = nn.parameter "t" slices ["table"[100, 64] size [64, 64]] : tensor<64x64xf32>
  %r = nn.parameter "r" slices ["table"[100, 64] from [64, 0] size [1, 64]] : tensor<1x64xf32>
  // CHECK: %[[TIED:.*]] = nn.reduce max
  %6 = nn.rms_norm %5, %q epsilon 1.0e-5 : tensor<2x4x64xf32>, tensor<64xf32> -> tensor<2x4x64xf32>
  %7 = nn.linear %6, %t role "tied" : tensor<2x4x64xf32>, tensor<64x64xf32> -> tensor<2x4x64xf32>
  // CHECK: return %{{.*}}, %[[R]]#1, %[[R]]#2, %[[T]]#1, %[[T]]#2, %[[OWN]], %[[TIED]]
  return %7 : tensor<2x4x64xf32>
}
