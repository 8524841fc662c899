func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>) -> tensor<3x4xf32> {
  %a = tensor.extract_slice %x[0, 0] [3, 4] [1, 1] : tensor<8x4xf32> to tensor<3x4xf32>
  %y = nn.linear %a, %w : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}
