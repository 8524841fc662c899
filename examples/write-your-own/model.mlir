// Two gated feed-forward blocks, written by hand. Shapes are those of the unpartitioned model on one logical device. The mesh
// and the shardings of three weights state how the model is split; propagation derives all other shardings.

comm.mesh @mesh <tp = 2>

// A block is a function of its weights, so both blocks share its code. The first two matmuls are split by output features,
// the third by input features: no communication is needed between them, and after the third every rank has a partial sum.
func.func private @block(
    %x: tensor<2x64x256xf32>,
    %norm: tensor<256xf32>,
    %gate: tensor<768x256xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>},
    %up: tensor<768x256xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>},
    %down: tensor<256x768xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>}) -> tensor<2x64x256xf32> {
  %0 = nn.rms_norm %x, %norm epsilon 1.0e-5 : tensor<2x64x256xf32>, tensor<256xf32> -> tensor<2x64x256xf32>
  %1 = nn.linear %0, %gate role "mlp.gate" : tensor<2x64x256xf32>, tensor<768x256xf32> -> tensor<2x64x768xf32>
  %2 = nn.activation silu %1 : tensor<2x64x768xf32>
  %3 = nn.linear %0, %up role "mlp.up" : tensor<2x64x256xf32>, tensor<768x256xf32> -> tensor<2x64x768xf32>
  %4 = nn.mul %2, %3 : tensor<2x64x768xf32>, tensor<2x64x768xf32> -> tensor<2x64x768xf32>
  %5 = nn.linear %4, %down role "mlp.down" : tensor<2x64x768xf32>, tensor<256x768xf32> -> tensor<2x64x256xf32>
  %6 = nn.add %x, %5 : tensor<2x64x256xf32>, tensor<2x64x256xf32> -> tensor<2x64x256xf32>
  return %6 : tensor<2x64x256xf32>
}

// The entry reads parameters by their names in a checkpoint; `braid run --random-weights SEED` draws their values.
func.func @main(%x: tensor<2x64x256xf32> {nn.name = "x"}) -> (tensor<2x64x256xf32> {nn.name = "y"})
    attributes {nn.entry} {
  %norm0 = nn.parameter "blocks.0.norm.weight" init ones : tensor<256xf32>
  %gate0 = nn.parameter "blocks.0.gate.weight" : tensor<768x256xf32>
  %up0 = nn.parameter "blocks.0.up.weight" : tensor<768x256xf32>
  %down0 = nn.parameter "blocks.0.down.weight" : tensor<256x768xf32>
  %0 = call @block(%x, %norm0, %gate0, %up0, %down0)
      : (tensor<2x64x256xf32>, tensor<256xf32>, tensor<768x256xf32>, tensor<768x256xf32>, tensor<256x768xf32>)
      -> tensor<2x64x256xf32>
  %norm1 = nn.parameter "blocks.1.norm.weight" init ones : tensor<256xf32>
  %gate1 = nn.parameter "blocks.1.gate.weight" : tensor<768x256xf32>
  %up1 = nn.parameter "blocks.1.up.weight" : tensor<768x256xf32>
  %down1 = nn.parameter "blocks.1.down.weight" : tensor<256x768xf32>
  %1 = call @block(%0, %norm1, %gate1, %up1, %down1)
      : (tensor<2x64x256xf32>, tensor<256xf32>, tensor<768x256xf32>, tensor<768x256xf32>, tensor<256x768xf32>)
      -> tensor<2x64x256xf32>
  return %1 : tensor<2x64x256xf32>
}
