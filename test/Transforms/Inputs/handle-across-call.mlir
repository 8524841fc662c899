comm.mesh @mesh <tp = 2>
func.func @begin(%x: tensor<8x4xf32>) -> !comm.handle<tensor<8x4xf32>> {
  %h = comm.start (%a = %x) : tensor<8x4xf32> -> !comm.handle<tensor<8x4xf32>> {
    %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<8x4xf32>
    comm.yield %r : tensor<8x4xf32>
  }
  return %h : !comm.handle<tensor<8x4xf32>>
}
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %h = call @begin(%x) : (tensor<8x4xf32>) -> !comm.handle<tensor<8x4xf32>>
  %y = comm.wait %h keeping %x : !comm.handle<tensor<8x4xf32>>, tensor<8x4xf32> -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
