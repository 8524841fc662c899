comm.mesh @mesh <tp = 2>
func.func @main(%x: tensor<8xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{}], partial = [tp = sum]>, comm.global_type = tensor<8xf32>})
    -> (tensor<8xf32> {nn.name = "y"}) attributes {nn.entry} {
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<8xf32>
  return %0 : tensor<8xf32>
}
