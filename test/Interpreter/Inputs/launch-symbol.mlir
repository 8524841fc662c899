rt.kernel @own(tensor<?x4xf32>) -> tensor<?x4xf32> attributes {library_symbol = "own"}
func.func @main(%x: tensor<8x4xf32> {test.input = dense<1.0> : tensor<8x4xf32>}) -> tensor<8x4xf32> {
  %0 = rt.launch @own rows 8 ins(%x : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
