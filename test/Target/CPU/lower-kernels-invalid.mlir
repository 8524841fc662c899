// RUN: braid-opt %s -braid-cpu-lower-kernels -split-input-file -verify-diagnostics
// RUN: not braid-opt %s -braid-cpu-lower-kernels="vector-width=12" -split-input-file 2>&1 | FileCheck %s
// CHECK: expects a vector width that is a power of two and at least one accumulator, got 12 and 2

#rc = affine_map<(r, c) -> (r, c)>

// expected-error @below {{'copy' expects elements of f32, i32 or i64 on the CPU target, got 'tensor<?x8xbf16>'}}
rt.kernel @copy(%x: tensor<?x8xbf16>) -> tensor<?x8xbf16> {
  rt.yield %x : tensor<?x8xbf16>
}

// -----

#rc = affine_map<(r, c) -> (r, c)>
rt.kernel @row_number(%x: tensor<?x8xi64>) -> tensor<?x8xi64> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xi64>
  %e = tensor.empty(%n) : tensor<?x8xi64>
  %0 = linalg.generic {indexing_maps = [#rc, #rc], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x8xi64>) outs(%e : tensor<?x8xi64>) {
    ^bb0(%a: i64, %o: i64):
      // expected-error @below {{'linalg.index' op of the outermost row dimension is not known: a launch may be any range of rows}}
      %i = linalg.index 0 : index
      %k = arith.index_cast %i : index to i64
      linalg.yield %k : i64
  } -> tensor<?x8xi64>
  rt.yield %0 : tensor<?x8xi64>
}

// -----

#rc = affine_map<(r, c) -> (r, c)>
rt.kernel @two_widths(%x: tensor<?x8xf32>, %y: tensor<?x4xf32>) -> (tensor<?x8xf32>, tensor<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  // expected-error @below {{'linalg.generic' op expects 8 columns, as other ops of the kernel have, got 4}}
  %0 = linalg.generic {indexing_maps = [#rc, #rc], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %1 = arith.addf %a, %a : f32
      linalg.yield %1 : f32
  } -> tensor<?x4xf32>
  rt.yield %x, %0 : tensor<?x8xf32>, tensor<?x4xf32>
}

// -----

#rc = affine_map<(r, c) -> (r, c)>
rt.kernel @captures(%x: tensor<?x8xi64>) -> tensor<?x8xi64> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xi64>
  %e = tensor.empty(%n) : tensor<?x8xi64>
  // expected-error @below {{'linalg.generic' op expects its region to use nothing from outside but constants}}
  %0 = linalg.generic {indexing_maps = [#rc, #rc], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x8xi64>) outs(%e : tensor<?x8xi64>) {
    ^bb0(%a: i64, %o: i64):
      %k = arith.index_cast %n : index to i64
      linalg.yield %k : i64
  } -> tensor<?x8xi64>
  rt.yield %0 : tensor<?x8xi64>
}
