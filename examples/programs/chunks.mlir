// An all_gather and a matmul in four chunks, and a matmul and a reduce_scatter in three chunks of different sizes.
// Every chunk is a slice of one buffer, on the way in and on the way out.
comm.mesh @mesh <tp = 2>
func.func @main(
    %x: tensor<1x8x16xf32> {nn.name = "x", comm.global_type = tensor<2x8x16xf32>, comm.sharding = #comm.sharding<@mesh, [{tp}, {}, {}]>})
    -> (tensor<1x8x16xf32> {nn.name = "y", comm.global_type = tensor<2x8x16xf32>, comm.sharding = #comm.sharding<@mesh, [{tp}, {}, {}]>})
    attributes {nn.entry} {
  %up = nn.parameter "up" of tensor<32x16xf32> sharded <@mesh, [{tp}, {}]> : tensor<16x16xf32>
  %down = nn.parameter "down" of tensor<16x32xf32> sharded <@mesh, [{}, {tp}]> : tensor<16x16xf32>
  %n = nn.activation silu %x : tensor<1x8x16xf32>
  %x0 = nn.slice %n dim 1 from 0 size 2 : tensor<1x8x16xf32> -> tensor<1x2x16xf32>
  %g0 = comm.start (%a = %x0) : tensor<1x2x16xf32> -> !comm.handle<tensor<2x2x16xf32>> {
    %v = comm.all_gather(%a) dim 0 over <@mesh, {tp}> role "gather.0" : tensor<1x2x16xf32> -> tensor<2x2x16xf32>
    comm.yield %v : tensor<2x2x16xf32>
  }
  %x1 = nn.slice %n dim 1 from 2 size 2 : tensor<1x8x16xf32> -> tensor<1x2x16xf32>
  %g1 = comm.start (%a = %x1) : tensor<1x2x16xf32> -> !comm.handle<tensor<2x2x16xf32>> {
    %v = comm.all_gather(%a) dim 0 over <@mesh, {tp}> role "gather.1" : tensor<1x2x16xf32> -> tensor<2x2x16xf32>
    comm.yield %v : tensor<2x2x16xf32>
  }
  %x2 = nn.slice %n dim 1 from 4 size 2 : tensor<1x8x16xf32> -> tensor<1x2x16xf32>
  %g2 = comm.start (%a = %x2) : tensor<1x2x16xf32> -> !comm.handle<tensor<2x2x16xf32>> {
    %v = comm.all_gather(%a) dim 0 over <@mesh, {tp}> role "gather.2" : tensor<1x2x16xf32> -> tensor<2x2x16xf32>
    comm.yield %v : tensor<2x2x16xf32>
  }
  %x3 = nn.slice %n dim 1 from 6 size 2 : tensor<1x8x16xf32> -> tensor<1x2x16xf32>
  %g3 = comm.start (%a = %x3) : tensor<1x2x16xf32> -> !comm.handle<tensor<2x2x16xf32>> {
    %v = comm.all_gather(%a) dim 0 over <@mesh, {tp}> role "gather.3" : tensor<1x2x16xf32> -> tensor<2x2x16xf32>
    comm.yield %v : tensor<2x2x16xf32>
  }
  %w0 = comm.wait %g0 keeping %x0 : !comm.handle<tensor<2x2x16xf32>>, tensor<1x2x16xf32> -> tensor<2x2x16xf32>
  %p0 = nn.linear %w0, %up role "up.0" : tensor<2x2x16xf32>, tensor<16x16xf32> -> tensor<2x2x16xf32>
  %w1 = comm.wait %g1 keeping %x1 : !comm.handle<tensor<2x2x16xf32>>, tensor<1x2x16xf32> -> tensor<2x2x16xf32>
  %p1 = nn.linear %w1, %up role "up.1" : tensor<2x2x16xf32>, tensor<16x16xf32> -> tensor<2x2x16xf32>
  %w2 = comm.wait %g2 keeping %x2 : !comm.handle<tensor<2x2x16xf32>>, tensor<1x2x16xf32> -> tensor<2x2x16xf32>
  %p2 = nn.linear %w2, %up role "up.2" : tensor<2x2x16xf32>, tensor<16x16xf32> -> tensor<2x2x16xf32>
  %w3 = comm.wait %g3 keeping %x3 : !comm.handle<tensor<2x2x16xf32>>, tensor<1x2x16xf32> -> tensor<2x2x16xf32>
  %p3 = nn.linear %w3, %up role "up.3" : tensor<2x2x16xf32>, tensor<16x16xf32> -> tensor<2x2x16xf32>
  %h = nn.concat %p0, %p1, %p2, %p3 dim 1 : tensor<2x2x16xf32>, tensor<2x2x16xf32>, tensor<2x2x16xf32>, tensor<2x2x16xf32> -> tensor<2x8x16xf32>
  %g = nn.activation gelu %h : tensor<2x8x16xf32>
  %h0 = nn.slice %g dim 1 from 0 size 2 : tensor<2x8x16xf32> -> tensor<2x2x16xf32>
  %q0 = nn.linear %h0, %down role "down.0" : tensor<2x2x16xf32>, tensor<16x16xf32> -> tensor<2x2x16xf32>
  %s0 = comm.start (%a = %q0) : tensor<2x2x16xf32> -> !comm.handle<tensor<1x2x16xf32>> {
    %v = comm.reduce_scatter sum(%a) dim 0 over <@mesh, {tp}> role "scatter.0" : tensor<2x2x16xf32> -> tensor<1x2x16xf32>
    comm.yield %v : tensor<1x2x16xf32>
  }
  %h1 = nn.slice %g dim 1 from 2 size 3 : tensor<2x8x16xf32> -> tensor<2x3x16xf32>
  %q1 = nn.linear %h1, %down role "down.1" : tensor<2x3x16xf32>, tensor<16x16xf32> -> tensor<2x3x16xf32>
  %s1 = comm.start (%a = %q1) : tensor<2x3x16xf32> -> !comm.handle<tensor<1x3x16xf32>> {
    %v = comm.reduce_scatter sum(%a) dim 0 over <@mesh, {tp}> role "scatter.1" : tensor<2x3x16xf32> -> tensor<1x3x16xf32>
    comm.yield %v : tensor<1x3x16xf32>
  }
  %h2 = nn.slice %g dim 1 from 5 size 3 : tensor<2x8x16xf32> -> tensor<2x3x16xf32>
  %q2 = nn.linear %h2, %down role "down.2" : tensor<2x3x16xf32>, tensor<16x16xf32> -> tensor<2x3x16xf32>
  %s2 = comm.start (%a = %q2) : tensor<2x3x16xf32> -> !comm.handle<tensor<1x3x16xf32>> {
    %v = comm.reduce_scatter sum(%a) dim 0 over <@mesh, {tp}> role "scatter.2" : tensor<2x3x16xf32> -> tensor<1x3x16xf32>
    comm.yield %v : tensor<1x3x16xf32>
  }
  %r0 = comm.wait %s0 keeping %q0 : !comm.handle<tensor<1x2x16xf32>>, tensor<2x2x16xf32> -> tensor<1x2x16xf32>
  %r1 = comm.wait %s1 keeping %q1 : !comm.handle<tensor<1x3x16xf32>>, tensor<2x3x16xf32> -> tensor<1x3x16xf32>
  %r2 = comm.wait %s2 keeping %q2 : !comm.handle<tensor<1x3x16xf32>>, tensor<2x3x16xf32> -> tensor<1x3x16xf32>
  %d = nn.concat %r0, %r1, %r2 dim 1 : tensor<1x2x16xf32>, tensor<1x3x16xf32>, tensor<1x3x16xf32> -> tensor<1x8x16xf32>
  %y = nn.add %d, %x : tensor<1x8x16xf32>, tensor<1x8x16xf32> -> tensor<1x8x16xf32>
  return %y : tensor<1x8x16xf32>
}
