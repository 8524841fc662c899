// RUN: braid-opt %s --split-input-file --verify-diagnostics --braid-convert-tensor-parts

func.func @f(%x: tensor<8xf32>, %i: index) -> tensor<2xf32> {
  // expected-error @+1 {{'tensor.extract_slice' op cannot be nn.slice and nn.concat: offsets and sizes of a part are static}}
  %0 = tensor.extract_slice %x[%i] [2] [1] : tensor<8xf32> to tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @f(%p: tensor<2xf32>, %x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{'tensor.insert_slice' op cannot be nn.slice and nn.concat: a part has strides of 1}}
  %0 = tensor.insert_slice %p into %x[0] [2] [2] : tensor<2xf32> into tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @f(%x: tensor<?xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{'tensor.extract_slice' op cannot be nn.slice and nn.concat: a part is of a value of static shape with at most 2^48 elements}}
  %0 = tensor.extract_slice %x[0] [2] [1] : tensor<?xf32> to tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @f(%x: tensor<8xf32>) -> tensor<0xf32> {
  // expected-error @+1 {{'tensor.extract_slice' op cannot be nn.slice and nn.concat: a part has at least one element}}
  %0 = tensor.extract_slice %x[0] [0] [1] : tensor<8xf32> to tensor<0xf32>
  return %0 : tensor<0xf32>
}

// -----

func.func @f(%x: tensor<8xi1>) -> tensor<16xi1> {
  // expected-error @+1 {{'tensor.concat' op cannot be nn.slice and nn.concat: a part is of a value of f64, f32, bf16, f16, i64, i32 or i8}}
  %0 = tensor.concat dim(0) %x, %x : (tensor<8xi1>, tensor<8xi1>) -> tensor<16xi1>
  return %0 : tensor<16xi1>
}
