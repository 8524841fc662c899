comm.mesh @mesh <tp = 2>
func.func @main(%x: tensor<8x4xf32> {nn.name = "x"}) -> (!comm.handle<tensor<8x4xf32>> {nn.name = "y"}) attributes {nn.entry} {
  %h = comm.start (%a = %x) : tensor<8x4xf32> -> !comm.handle<tensor<8x4xf32>> {
    %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<8x4xf32>
    comm.yield %r : tensor<8x4xf32>
  }
  return %h : !comm.handle<tensor<8x4xf32>>
}
