// A gradient over three micro-batches. Each call adds its product to the partial sum of the call before, in the sum's own
// memory, and one reduction over the ranks follows.
comm.mesh @mesh <dp = 2>
func.func private @begin(%x: tensor<8x4xf32>, %d: tensor<8x6xf32>) -> tensor<6x4xf32> {
  %g = nn.matmul %d transposed, %x role "gradient" : tensor<8x6xf32>, tensor<8x4xf32> -> tensor<6x4xf32>
  return %g : tensor<6x4xf32>
}
func.func private @add(%sum: tensor<6x4xf32>, %x: tensor<8x4xf32>, %d: tensor<8x6xf32>) -> tensor<6x4xf32> {
  %g = nn.matmul %d transposed, %x plus %sum : tensor<6x4xf32> role "gradient" : tensor<8x6xf32>, tensor<8x4xf32> -> tensor<6x4xf32>
  return %g : tensor<6x4xf32>
}
func.func @main(
    %x: tensor<24x4xf32> {nn.name = "x", comm.global_type = tensor<48x4xf32>, comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>},
    %d: tensor<24x6xf32> {nn.name = "d", comm.global_type = tensor<48x6xf32>, comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>})
    -> (tensor<6x4xf32> {nn.name = "y", comm.global_type = tensor<6x4xf32>, comm.sharding = #comm.sharding<@mesh, [{}, {}]>})
    attributes {nn.entry} {
  %x0 = nn.slice %x dim 0 from 0 size 8 : tensor<24x4xf32> -> tensor<8x4xf32>
  %d0 = nn.slice %d dim 0 from 0 size 8 : tensor<24x6xf32> -> tensor<8x6xf32>
  %x1 = nn.slice %x dim 0 from 8 size 8 : tensor<24x4xf32> -> tensor<8x4xf32>
  %d1 = nn.slice %d dim 0 from 8 size 8 : tensor<24x6xf32> -> tensor<8x6xf32>
  %x2 = nn.slice %x dim 0 from 16 size 8 : tensor<24x4xf32> -> tensor<8x4xf32>
  %d2 = nn.slice %d dim 0 from 16 size 8 : tensor<24x6xf32> -> tensor<8x6xf32>
  %g0 = func.call @begin(%x0, %d0) : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<6x4xf32>
  %g1 = func.call @add(%g0, %x1, %d1) : (tensor<6x4xf32>, tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<6x4xf32>
  %g2 = func.call @add(%g1, %x2, %d2) : (tensor<6x4xf32>, tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<6x4xf32>
  %h = comm.start (%a = %g2) : tensor<6x4xf32> -> !comm.handle<tensor<6x4xf32>> {
    %v = comm.all_reduce sum(%a) over <@mesh, {dp}> role "gradient" : tensor<6x4xf32>
    comm.yield %v : tensor<6x4xf32>
  }
  %s = comm.wait %h keeping %g2 : !comm.handle<tensor<6x4xf32>>, tensor<6x4xf32> -> tensor<6x4xf32>
  %y = nn.activation tanh %s : tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}
