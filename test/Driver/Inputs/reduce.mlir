func.func @layer(%x: tensor<2x8xf32>, %scale: tensor<f32>, %w: tensor<8x8xf32>) -> tensor<2x8xf32> {
  %0 = nn.activation gelu %x : tensor<2x8xf32>
  %1 = nn.linear %0, %w : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  %2 = nn.activation gelu %scale : tensor<f32>
  %3 = nn.mul %2, %2 : tensor<f32>, tensor<f32> -> tensor<f32>
  %4 = nn.mul %3, %3 : tensor<f32>, tensor<f32> -> tensor<f32>
  %5 = nn.mul %1, %4 : tensor<2x8xf32>, tensor<f32> -> tensor<2x8xf32>
  return %5 : tensor<2x8xf32>
}
func.func @head(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %0 = nn.softmax %x : tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
func.func @main(%x: tensor<2x8xf32>, %scale: tensor<f32>, %w: tensor<8x8xf32>) -> tensor<2x8xf32> {
  %0 = call @layer(%x, %scale, %w) : (tensor<2x8xf32>, tensor<f32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %1 = call @layer(%0, %scale, %w) : (tensor<2x8xf32>, tensor<f32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %2 = call @head(%1) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return %2 : tensor<2x8xf32>
}
