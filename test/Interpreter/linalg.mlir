// RUN: braid-opt %s --split-input-file --test-interpret -o /dev/null | FileCheck %s

// A matmul with a transposed operand by indexing maps; the body uses a value from outside.
#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>
// CHECK: result0 = f32[2, 2] [34, 46, 46, 74]
func.func @main(%x: tensor<2x2xf32> {test.input = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>})
    -> (tensor<2x2xf32> {test.expected = dense<[[34.0, 46.0], [46.0, 74.0]]> : tensor<2x2xf32>}) {
  %two = arith.constant 2.0 : f32
  %init = arith.constant 24.0 : f32
  %empty = tensor.empty() : tensor<2x2xf32>
  %fill = linalg.fill ins(%init : f32) outs(%empty : tensor<2x2xf32>) -> tensor<2x2xf32>
  %0 = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %x : tensor<2x2xf32>, tensor<2x2xf32>) outs(%fill : tensor<2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.mulf %p, %two : f32
    %s = arith.addf %acc, %q : f32
    linalg.yield %s : f32
  } -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

// Indices, integers that wrap at their width, comparisons, and elements extracted from a tensor outside of the body.
#id = affine_map<(d) -> (d)>
// CHECK: result0 = i32[4] [-2147483647, 2, 1, -2147483644]
// CHECK: result1 = f32[4] [40, 30, 20, 10]
func.func @main(%x: tensor<4xf32> {test.input = dense<[10.0, 20.0, 30.0, 40.0]> : tensor<4xf32>})
    -> (tensor<4xi32> {test.expected = dense<[-2147483647, 2, 1, -2147483644]> : tensor<4xi32>}, tensor<4xf32>) {
  %most = arith.constant 2147483647 : i32
  %c3 = arith.constant 3 : index
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<4xf32>
  %i = tensor.empty() : tensor<4xi32>
  %f = tensor.empty() : tensor<4xf32>
  %0:2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      outs(%i, %f : tensor<4xi32>, tensor<4xf32>) {
  ^bb0(%a: i32, %b: f32):
    %d = linalg.index 0 : index
    %back = arith.subi %c3, %d : index
    %e = tensor.extract %x[%back] : tensor<4xf32>
    %d32 = arith.index_cast %d : index to i32
    %two = arith.constant 2 : i32
    %sum = arith.addi %d32, %two : i32
    %wrapped = arith.addi %sum, %most : i32
    %three = arith.constant 3 : i32
    %small = arith.subi %three, %d32 : i32
    %begins = arith.cmpi eq, %d, %c0 : index
    %left = arith.subi %n, %d : index
    %c1 = arith.constant 1 : index
    %last = arith.cmpi ule, %left, %c1 : index
    %either = arith.ori %begins, %last : i1
    %r = arith.select %either, %wrapped, %small : i32
    linalg.yield %r, %e : i32, f32
  } -> (tensor<4xi32>, tensor<4xf32>)
  return %0#0, %0#1 : tensor<4xi32>, tensor<4xf32>
}

// -----

// A named structured operation is evaluated by its maps and body. Slices have strides and dropped dimensions. Nothing is
// rounded unless requested.
// CHECK: result0 = f32[2, 2] [17, 20, 57, 68]
// CHECK: result1 = f32[2] [12, 10]
// CHECK: result2 = bf16[2] [1.001, 2.001]
func.func @main(%x: tensor<3x4xf32> {test.input = dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0]]> : tensor<3x4xf32>},
                %y: tensor<2xf32> {test.input = dense<[1.0, 2.0]> : tensor<2xf32>})
    -> (tensor<2x2xf32>, tensor<2xf32>, tensor<2xbf16>) {
  %zero = arith.constant 0.0 : f32
  %a = tensor.extract_slice %x[0, 0] [2, 2] [1, 1] : tensor<3x4xf32> to tensor<2x2xf32>
  %empty = tensor.empty() : tensor<2x2xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x2xf32>) -> tensor<2x2xf32>
  %b = tensor.extract_slice %x[0, 2] [2, 2] [1, 1] : tensor<3x4xf32> to tensor<2x2xf32>
  %product = linalg.matmul ins(%a, %b : tensor<2x2xf32>, tensor<2x2xf32>) outs(%fill : tensor<2x2xf32>) -> tensor<2x2xf32>
  %sum = linalg.add ins(%fill, %product : tensor<2x2xf32>, tensor<2x2xf32>) outs(%empty : tensor<2x2xf32>) -> tensor<2x2xf32>
  %row = tensor.extract_slice %x[2, 1] [1, 2] [1, 2] : tensor<3x4xf32> to tensor<2xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %first = tensor.extract %row[%c0] : tensor<2xf32>
  %second = tensor.extract %row[%c1] : tensor<2xf32>
  %init = tensor.empty() : tensor<2xf32>
  %swapped = linalg.generic {indexing_maps = [affine_map<(d) -> (-d + 1)>, affine_map<(d) -> (d)>], iterator_types = ["parallel"]}
      ins(%row : tensor<2xf32>) outs(%init : tensor<2xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2xf32>
  %offset = arith.constant dense<0.001> : tensor<2xf64>
  %wide = arith.extf %y : tensor<2xf32> to tensor<2xf64>
  %more = arith.addf %wide, %offset : tensor<2xf64>
  %narrow = arith.truncf %more : tensor<2xf64> to tensor<2xbf16>
  return %sum, %swapped, %narrow : tensor<2x2xf32>, tensor<2xf32>, tensor<2xbf16>
}

// -----

// Indexing maps that are not linear.
#half = affine_map<(d) -> (d floordiv 2)>
#cycle = affine_map<(d) -> (d mod 3)>
#each = affine_map<(d) -> (d)>
// CHECK: result0 = f32[6] [2, 3, 5, 3, 5, 6]
func.func @main(%x: tensor<3xf32> {test.input = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>})
    -> (tensor<6xf32> {test.expected = dense<[2.0, 3.0, 5.0, 3.0, 5.0, 6.0]> : tensor<6xf32>}) {
  %empty = tensor.empty() : tensor<6xf32>
  %0 = linalg.generic {indexing_maps = [#half, #cycle, #each], iterator_types = ["parallel"]}
      ins(%x, %x : tensor<3xf32>, tensor<3xf32>) outs(%empty : tensor<6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<6xf32>
  return %0 : tensor<6xf32>
}
