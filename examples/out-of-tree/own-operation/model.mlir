// A feed-forward block with group.rms_norm between its matmuls. Split over tp, every rank has complete groups: no
// communication is needed before the second matmul.
comm.mesh @mesh <tp = 2>

func.func @main(%x: tensor<2x16x64xf32> {nn.name = "x"}) -> (tensor<2x16x64xf32> {nn.name = "y"})
    attributes {nn.entry} {
  %up = nn.parameter "up.weight" : tensor<256x64xf32>
  %norm = nn.parameter "norm.weight" init ones : tensor<256xf32>
  %down = nn.parameter "down.weight" : tensor<64x256xf32>
  %0 = nn.linear %x, %up role "mlp.up" : tensor<2x16x64xf32>, tensor<256x64xf32> -> tensor<2x16x256xf32>
  %1 = nn.activation silu %0 : tensor<2x16x256xf32>
  %2 = group.rms_norm %1, %norm size 32 epsilon 1.0e-5 : tensor<2x16x256xf32>, tensor<256xf32>
  %3 = nn.linear %2, %down role "mlp.down" : tensor<2x16x256xf32>, tensor<64x256xf32> -> tensor<2x16x64xf32>
  return %3 : tensor<2x16x64xf32>
}
