// Two slices of a batch through four layers. A layer hands out its reduction while it is in flight, and the next layer of
// the same slice waits for it; in between, the layer of the other slice computes.
comm.mesh @mesh <tp = 2>
func.func private @first(%x: tensor<4x16xf32>, %up: tensor<16x16xf32>, %down: tensor<16x16xf32>)
    -> (!comm.handle<tensor<4x16xf32>>, tensor<4x16xf32>) {
  %u = nn.linear %x, %up role "up" : tensor<4x16xf32>, tensor<16x16xf32> -> tensor<4x16xf32>
  %g = nn.activation gelu %u : tensor<4x16xf32>
  %p = nn.linear %g, %down role "down" : tensor<4x16xf32>, tensor<16x16xf32> -> tensor<4x16xf32>
  %n = comm.start (%a = %p) : tensor<4x16xf32> -> !comm.handle<tensor<4x16xf32>> {
    %q = comm.all_reduce sum(%a) over <@mesh, {tp}> role "down" : tensor<4x16xf32>
    comm.yield %q : tensor<4x16xf32>
  }
  return %n, %p : !comm.handle<tensor<4x16xf32>>, tensor<4x16xf32>
}
func.func private @layer(%h: !comm.handle<tensor<4x16xf32>>, %kept: tensor<4x16xf32>, %x: tensor<4x16xf32>, %up: tensor<16x16xf32>, %down: tensor<16x16xf32>)
    -> (!comm.handle<tensor<4x16xf32>>, tensor<4x16xf32>, tensor<4x16xf32>) {
  %s = comm.wait %h keeping %kept : !comm.handle<tensor<4x16xf32>>, tensor<4x16xf32> -> tensor<4x16xf32>
  %r = nn.add %s, %x : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %u = nn.linear %r, %up role "up" : tensor<4x16xf32>, tensor<16x16xf32> -> tensor<4x16xf32>
  %g = nn.activation gelu %u : tensor<4x16xf32>
  %p = nn.linear %g, %down role "down" : tensor<4x16xf32>, tensor<16x16xf32> -> tensor<4x16xf32>
  %n = comm.start (%a = %p) : tensor<4x16xf32> -> !comm.handle<tensor<4x16xf32>> {
    %q = comm.all_reduce sum(%a) over <@mesh, {tp}> role "down" : tensor<4x16xf32>
    comm.yield %q : tensor<4x16xf32>
  }
  return %n, %p, %r : !comm.handle<tensor<4x16xf32>>, tensor<4x16xf32>, tensor<4x16xf32>
}
func.func private @last(%h: !comm.handle<tensor<4x16xf32>>, %kept: tensor<4x16xf32>, %x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %s = comm.wait %h keeping %kept : !comm.handle<tensor<4x16xf32>>, tensor<4x16xf32> -> tensor<4x16xf32>
  %r = nn.add %s, %x : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  return %r : tensor<4x16xf32>
}
func.func @main(%x: tensor<8x16xf32> {nn.name = "x", comm.global_type = tensor<8x16xf32>, comm.sharding = #comm.sharding<@mesh, [{}, {}]>})
    -> (tensor<8x16xf32> {nn.name = "y", comm.global_type = tensor<8x16xf32>, comm.sharding = #comm.sharding<@mesh, [{}, {}]>})
    attributes {nn.entry} {
  %up0 = nn.parameter "up.0" of tensor<32x16xf32> sharded <@mesh, [{tp}, {}]> : tensor<16x16xf32>
  %down0 = nn.parameter "down.0" of tensor<16x32xf32> sharded <@mesh, [{}, {tp}]> : tensor<16x16xf32>
  %up1 = nn.parameter "up.1" of tensor<32x16xf32> sharded <@mesh, [{tp}, {}]> : tensor<16x16xf32>
  %down1 = nn.parameter "down.1" of tensor<16x32xf32> sharded <@mesh, [{}, {tp}]> : tensor<16x16xf32>
  %up2 = nn.parameter "up.2" of tensor<32x16xf32> sharded <@mesh, [{tp}, {}]> : tensor<16x16xf32>
  %down2 = nn.parameter "down.2" of tensor<16x32xf32> sharded <@mesh, [{}, {tp}]> : tensor<16x16xf32>
  %up3 = nn.parameter "up.3" of tensor<32x16xf32> sharded <@mesh, [{tp}, {}]> : tensor<16x16xf32>
  %down3 = nn.parameter "down.3" of tensor<16x32xf32> sharded <@mesh, [{}, {tp}]> : tensor<16x16xf32>
  %a0 = nn.slice %x dim 0 from 0 size 4 : tensor<8x16xf32> -> tensor<4x16xf32>
  %b0 = nn.slice %x dim 0 from 4 size 4 : tensor<8x16xf32> -> tensor<4x16xf32>
  %ha0, %ka0 = func.call @first(%a0, %up0, %down0) : (tensor<4x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) -> (!comm.handle<tensor<4x16xf32>>, tensor<4x16xf32>)
  %hb0, %kb0 = func.call @first(%b0, %up0, %down0) : (tensor<4x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) -> (!comm.handle<tensor<4x16xf32>>, tensor<4x16xf32>)
  %ha1, %ka1, %a1 = func.call @layer(%ha0, %ka0, %a0, %up1, %down1) : (!comm.handle<tensor<4x16xf32>>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) -> (!comm.handle<tensor<4x16xf32>>, tensor<4x16xf32>, tensor<4x16xf32>)
  %hb1, %kb1, %b1 = func.call @layer(%hb0, %kb0, %b0, %up1, %down1) : (!comm.handle<tensor<4x16xf32>>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) -> (!comm.handle<tensor<4x16xf32>>, tensor<4x16xf32>, tensor<4x16xf32>)
  %ha2, %ka2, %a2 = func.call @layer(%ha1, %ka1, %a1, %up2, %down2) : (!comm.handle<tensor<4x16xf32>>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) -> (!comm.handle<tensor<4x16xf32>>, tensor<4x16xf32>, tensor<4x16xf32>)
  %hb2, %kb2, %b2 = func.call @layer(%hb1, %kb1, %b1, %up2, %down2) : (!comm.handle<tensor<4x16xf32>>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) -> (!comm.handle<tensor<4x16xf32>>, tensor<4x16xf32>, tensor<4x16xf32>)
  %ha3, %ka3, %a3 = func.call @layer(%ha2, %ka2, %a2, %up3, %down3) : (!comm.handle<tensor<4x16xf32>>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) -> (!comm.handle<tensor<4x16xf32>>, tensor<4x16xf32>, tensor<4x16xf32>)
  %hb3, %kb3, %b3 = func.call @layer(%hb2, %kb2, %b2, %up3, %down3) : (!comm.handle<tensor<4x16xf32>>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) -> (!comm.handle<tensor<4x16xf32>>, tensor<4x16xf32>, tensor<4x16xf32>)
  %ya = func.call @last(%ha3, %ka3, %a3) : (!comm.handle<tensor<4x16xf32>>, tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %yb = func.call @last(%hb3, %kb3, %b3) : (!comm.handle<tensor<4x16xf32>>, tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %y = nn.concat %ya, %yb dim 0 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}
