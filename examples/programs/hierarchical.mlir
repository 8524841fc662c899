// An all_reduce over two nodes of two ranks each, in three chunks: a reduce_scatter inside of the node, an all_reduce
// between nodes on a queue of its own, and an all_gather inside of the node. The phases of different chunks run at once.
comm.mesh @mesh <node = 2, gpu = 2>
func.func @main(
    %x: tensor<8x4xf32> {nn.name = "x", comm.global_type = tensor<8x16xf32>, comm.sharding = #comm.sharding<@mesh, [{}, {node, gpu}]>})
    -> (tensor<8x16xf32> {nn.name = "y", comm.global_type = tensor<8x16xf32>, comm.sharding = #comm.sharding<@mesh, [{}, {}]>})
    attributes {nn.entry} {
  %w = nn.parameter "w" of tensor<16x16xf32> sharded <@mesh, [{}, {node, gpu}]> : tensor<16x4xf32>
  %x0 = nn.slice %x dim 0 from 0 size 2 : tensor<8x4xf32> -> tensor<2x4xf32>
  %p0 = nn.linear %x0, %w role "part.0" : tensor<2x4xf32>, tensor<16x4xf32> -> tensor<2x16xf32>
  %s0 = comm.start (%a = %p0) : tensor<2x16xf32> -> !comm.handle<tensor<1x16xf32>> {
    %v = comm.reduce_scatter sum(%a) dim 0 over <@mesh, {gpu}> role "in.0" : tensor<2x16xf32> -> tensor<1x16xf32>
    comm.yield %v : tensor<1x16xf32>
  }
  %x1 = nn.slice %x dim 0 from 2 size 2 : tensor<8x4xf32> -> tensor<2x4xf32>
  %p1 = nn.linear %x1, %w role "part.1" : tensor<2x4xf32>, tensor<16x4xf32> -> tensor<2x16xf32>
  %s1 = comm.start (%a = %p1) : tensor<2x16xf32> -> !comm.handle<tensor<1x16xf32>> {
    %v = comm.reduce_scatter sum(%a) dim 0 over <@mesh, {gpu}> role "in.1" : tensor<2x16xf32> -> tensor<1x16xf32>
    comm.yield %v : tensor<1x16xf32>
  }
  %x2 = nn.slice %x dim 0 from 4 size 4 : tensor<8x4xf32> -> tensor<4x4xf32>
  %p2 = nn.linear %x2, %w role "part.2" : tensor<4x4xf32>, tensor<16x4xf32> -> tensor<4x16xf32>
  %s2 = comm.start (%a = %p2) : tensor<4x16xf32> -> !comm.handle<tensor<2x16xf32>> {
    %v = comm.reduce_scatter sum(%a) dim 0 over <@mesh, {gpu}> role "in.2" : tensor<4x16xf32> -> tensor<2x16xf32>
    comm.yield %v : tensor<2x16xf32>
  }
  %r0 = comm.wait %s0 on 1 keeping %p0 : !comm.handle<tensor<1x16xf32>>, tensor<2x16xf32> -> tensor<1x16xf32>
  %b0 = comm.start (%a = %r0) on 1 : tensor<1x16xf32> -> !comm.handle<tensor<1x16xf32>> {
    %v = comm.all_reduce sum(%a) over <@mesh, {node}> role "between.0" : tensor<1x16xf32>
    comm.yield %v : tensor<1x16xf32>
  }
  %r1 = comm.wait %s1 on 1 keeping %p1 : !comm.handle<tensor<1x16xf32>>, tensor<2x16xf32> -> tensor<1x16xf32>
  %b1 = comm.start (%a = %r1) on 1 : tensor<1x16xf32> -> !comm.handle<tensor<1x16xf32>> {
    %v = comm.all_reduce sum(%a) over <@mesh, {node}> role "between.1" : tensor<1x16xf32>
    comm.yield %v : tensor<1x16xf32>
  }
  %r2 = comm.wait %s2 on 1 keeping %p2 : !comm.handle<tensor<2x16xf32>>, tensor<4x16xf32> -> tensor<2x16xf32>
  %b2 = comm.start (%a = %r2) on 1 : tensor<2x16xf32> -> !comm.handle<tensor<2x16xf32>> {
    %v = comm.all_reduce sum(%a) over <@mesh, {node}> role "between.2" : tensor<2x16xf32>
    comm.yield %v : tensor<2x16xf32>
  }
  %t0 = comm.wait %b0 on 0 keeping %r0 : !comm.handle<tensor<1x16xf32>>, tensor<1x16xf32> -> tensor<1x16xf32>
  %g0 = comm.start (%a = %t0) : tensor<1x16xf32> -> !comm.handle<tensor<2x16xf32>> {
    %v = comm.all_gather(%a) dim 0 over <@mesh, {gpu}> role "out.0" : tensor<1x16xf32> -> tensor<2x16xf32>
    comm.yield %v : tensor<2x16xf32>
  }
  %t1 = comm.wait %b1 on 0 keeping %r1 : !comm.handle<tensor<1x16xf32>>, tensor<1x16xf32> -> tensor<1x16xf32>
  %g1 = comm.start (%a = %t1) : tensor<1x16xf32> -> !comm.handle<tensor<2x16xf32>> {
    %v = comm.all_gather(%a) dim 0 over <@mesh, {gpu}> role "out.1" : tensor<1x16xf32> -> tensor<2x16xf32>
    comm.yield %v : tensor<2x16xf32>
  }
  %t2 = comm.wait %b2 on 0 keeping %r2 : !comm.handle<tensor<2x16xf32>>, tensor<2x16xf32> -> tensor<2x16xf32>
  %g2 = comm.start (%a = %t2) : tensor<2x16xf32> -> !comm.handle<tensor<4x16xf32>> {
    %v = comm.all_gather(%a) dim 0 over <@mesh, {gpu}> role "out.2" : tensor<2x16xf32> -> tensor<4x16xf32>
    comm.yield %v : tensor<4x16xf32>
  }
  %u0 = comm.wait %g0 keeping %t0 : !comm.handle<tensor<2x16xf32>>, tensor<1x16xf32> -> tensor<2x16xf32>
  %u1 = comm.wait %g1 keeping %t1 : !comm.handle<tensor<2x16xf32>>, tensor<1x16xf32> -> tensor<2x16xf32>
  %u2 = comm.wait %g2 keeping %t2 : !comm.handle<tensor<4x16xf32>>, tensor<2x16xf32> -> tensor<4x16xf32>
  %u = nn.concat %u0, %u1, %u2 dim 0 : tensor<2x16xf32>, tensor<2x16xf32>, tensor<4x16xf32> -> tensor<8x16xf32>
  %y = nn.activation gelu %u : tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}
