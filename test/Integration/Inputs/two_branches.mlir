// Two parallel feed-forward blocks with the same input: the second is computed while the all_reduce of the first is in
// flight.

comm.mesh @mesh <tp = 2>

func.func private @branches(
    %x: tensor<512x256xf32>,
    %up0: tensor<1024x256xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>},
    %down0: tensor<256x1024xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>},
    %up1: tensor<8192x256xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>},
    %down1: tensor<256x8192xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>}) -> tensor<512x256xf32> {
  %0 = nn.linear %x, %up0 role "mlp.up" : tensor<512x256xf32>, tensor<1024x256xf32> -> tensor<512x1024xf32>
  %1 = nn.activation silu %0 : tensor<512x1024xf32>
  %2 = nn.linear %1, %down0 role "mlp.down" : tensor<512x1024xf32>, tensor<256x1024xf32> -> tensor<512x256xf32>
  %3 = nn.linear %x, %up1 role "mlp.up" : tensor<512x256xf32>, tensor<8192x256xf32> -> tensor<512x8192xf32>
  %4 = nn.activation silu %3 : tensor<512x8192xf32>
  %5 = nn.linear %4, %down1 role "mlp.down" : tensor<512x8192xf32>, tensor<256x8192xf32> -> tensor<512x256xf32>
  %6 = nn.activation silu %2 : tensor<512x256xf32>
  %7 = nn.activation silu %5 : tensor<512x256xf32>
  %8 = nn.add %6, %7 : tensor<512x256xf32>, tensor<512x256xf32> -> tensor<512x256xf32>
  return %8 : tensor<512x256xf32>
}

func.func @main(%x: tensor<512x256xf32> {nn.name = "x"}) -> (tensor<512x256xf32> {nn.name = "y"})
    attributes {nn.entry} {
  %up0 = nn.parameter "first.up.weight" : tensor<1024x256xf32>
  %down0 = nn.parameter "first.down.weight" : tensor<256x1024xf32>
  %up1 = nn.parameter "second.up.weight" : tensor<8192x256xf32>
  %down1 = nn.parameter "second.down.weight" : tensor<256x8192xf32>
  %0 = call @branches(%x, %up0, %down0, %up1, %down1)
      : (tensor<512x256xf32>, tensor<1024x256xf32>, tensor<256x1024xf32>, tensor<8192x256xf32>, tensor<256x8192xf32>)
      -> tensor<512x256xf32>
  return %0 : tensor<512x256xf32>
}
