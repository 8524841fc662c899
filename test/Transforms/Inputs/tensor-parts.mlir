func.func @main(%x: tensor<4x8x6xf32> {nn.name = "x"}, %y: tensor<4x3x6xf32> {nn.name = "y"},
                %w: tensor<6x6xf32> {nn.name = "w"}) -> (tensor<4x11x6xf32> {nn.name = "z"}) attributes {nn.entry} {
  %0 = nn.linear %x, %w : tensor<4x8x6xf32>, tensor<6x6xf32> -> tensor<4x8x6xf32>
  %1 = tensor.extract_slice %0[1, 2, 0] [2, 3, 6] [1, 1, 1] : tensor<4x8x6xf32> to tensor<2x3x6xf32>
  %2 = tensor.insert_slice %1 into %y[2, 0, 0] [2, 3, 6] [1, 1, 1] : tensor<2x3x6xf32> into tensor<4x3x6xf32>
  %3 = tensor.extract_slice %y[0, 1, 2] [1, 2, 3] [1, 1, 1] : tensor<4x3x6xf32> to tensor<2x3xf32>
  %4 = tensor.insert_slice %3 into %2[3, 1, 1] [1, 2, 3] [1, 1, 1] : tensor<2x3xf32> into tensor<4x3x6xf32>
  %5 = tensor.concat dim(1) %4, %0 : (tensor<4x3x6xf32>, tensor<4x8x6xf32>) -> tensor<4x11x6xf32>
  return %5 : tensor<4x11x6xf32>
}
