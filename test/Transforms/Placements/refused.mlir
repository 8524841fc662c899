// RUN: braid-opt %s --split-input-file --verify-diagnostics --braid-check-placements -o /dev/null

// A reduction is missing: the result is declared the same on all ranks.
comm.mesh @mesh <tp = 2>
func.func @main(%x: tensor<4x8xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<4x16xf32>})
    -> (tensor<4x4xf32> {nn.name = "y"}) attributes {nn.entry} {
  %w = nn.parameter "w" of tensor<4x16xf32> sharded <@mesh, [{}, {tp}]> : tensor<4x8xf32>
  // expected-note @+1 {{these are partial sums over axis 'tp', made here}}
  %0 = nn.linear %x, %w : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x4xf32>
  // expected-error @+1 {{'func.return' op expects the same value over axis 'tp' in result 0 ('y'), as 'main' declares, got partial sums}}
  return %0 : tensor<4x4xf32>
}

// -----

// Reduced twice.
comm.mesh @mesh <tp = 2>
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<4x16xf32>}) -> tensor<4x4xf32>
    {
  %w = nn.parameter "w" of tensor<4x16xf32> sharded <@mesh, [{}, {tp}]> : tensor<4x8xf32>
  %0 = nn.linear %x, %w : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x4xf32>
  // expected-note @+1 {{this is the same on all ranks of axis 'tp', made here}}
  %1 = comm.all_reduce sum(%0) over <@mesh, {tp}> : tensor<4x4xf32>
  // expected-note @+2 {{the sum has it 2 times}}
  // expected-error @+1 {{'comm.all_reduce' op expects partial sums over axis 'tp', got the same value}}
  %2 = comm.all_reduce sum(%1) over <@mesh, {tp}> : tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// -----

// A bias is added before the reduction.
comm.mesh @mesh <tp = 2>
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<4x16xf32>}, %b: tensor<4xf32>)
    -> tensor<4x4xf32> {
  %w = nn.parameter "w" of tensor<4x16xf32> sharded <@mesh, [{}, {tp}]> : tensor<4x8xf32>
  // expected-note @+1 {{these are partial sums over axis 'tp', made here}}
  %0 = nn.linear %x, %w : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x4xf32>
  // expected-note @+2 {{it is added on each of 2 ranks, so that the sum has it 2 times}}
  // expected-error @+1 {{'nn.add' op expects partial sums over axis 'tp' in operand 1 too, got the same value on all of its ranks}}
  %1 = nn.add %0, %b : tensor<4x4xf32>, tensor<4xf32> -> tensor<4x4xf32>
  %2 = comm.all_reduce sum(%1) over <@mesh, {tp}> : tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// -----

// An activation of partial sums.
comm.mesh @mesh <tp = 2>
// expected-note @+1 {{these are partial sums over axis 'tp', as argument 0 of 'main' is declared}}
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}], partial = [tp = sum]>, comm.global_type = tensor<4x8xf32>})
    -> tensor<4x8xf32> {
  // expected-note @+2 {{the operation is not linear in it}}
  // expected-error @+1 {{'nn.activation' op expects operand 0 reduced, got partial sums over axis 'tp'}}
  %0 = nn.activation gelu %x : tensor<4x8xf32>
  %1 = comm.all_reduce sum(%0) over <@mesh, {tp}> : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

// The same, computed by linalg.
#id = affine_map<(i, j) -> (i, j)>
comm.mesh @mesh <tp = 2>
// expected-note @+1 {{these are partial sums over axis 'tp', as argument 0 of 'main' is declared}}
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}], partial = [tp = sum]>, comm.global_type = tensor<4x8xf32>})
    -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  // expected-note @+2 {{it is added on each of 2 ranks, so that the sum has it 2 times}}
  // expected-error @+1 {{'linalg.generic' op expects partial sums over axis 'tp', got the same value on all of its ranks}}
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %one = arith.constant 1.0 : f32
    %s = arith.addf %a, %one : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  %1 = comm.all_reduce sum(%0) over <@mesh, {tp}> : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

// A product of two partial sums.
comm.mesh @mesh <tp = 2>
#partial = #comm.sharding<@mesh, [{}, {}], partial = [tp = sum]>
// expected-note @+2 {{these are partial sums over axis 'tp', as argument 0 of 'main' is declared}}
// expected-note @+1 {{these are partial sums over axis 'tp', as argument 1 of 'main' is declared}}
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #partial, comm.global_type = tensor<4x8xf32>}, %y: tensor<4x8xf32> {comm.sharding = #partial, comm.global_type = tensor<4x8xf32>})
    -> tensor<4x8xf32> {
  // expected-note @+2 {{a product of two sums is not the sum of products}}
  // expected-error @+1 {{'nn.mul' op expects partial sums over axis 'tp' in one operand, got them in 2}}
  %0 = nn.mul %x, %y : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %1 = comm.all_reduce sum(%0) over <@mesh, {tp}> : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

// Only one operand is cut along the contracted dimension.
comm.mesh @mesh <tp = 2>
// expected-note @+1 {{this is in parts over axis 'tp', as argument 0 of 'main' is declared}}
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<4x16xf32>}) -> tensor<4x4xf32>
    {
  %w = nn.parameter "w" : tensor<4x8xf32>
  // expected-error @+1 {{'nn.linear' op expects 'in' of operands 0 and 1 in the same parts over axis 'tp', got parts along dimension 1 and the same value}}
  %0 = nn.linear %x, %w : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x4xf32>
  %1 = comm.all_reduce sum(%0) over <@mesh, {tp}> : tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// -----

// Rows and outputs are cut over the same axis: a gather before the matmul is missing.
comm.mesh @mesh <tp = 2>
// expected-note @+1 {{this is in parts over axis 'tp', as argument 0 of 'main' is declared}}
func.func @main(%x: tensor<2x8xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>, comm.global_type = tensor<4x8xf32>})
    -> (tensor<2x2xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<2x4xf32>}) {
  // expected-note @+1 {{this is in parts over axis 'tp', made here}}
  %w = nn.parameter "w" of tensor<4x8xf32> sharded <@mesh, [{tp}, {}]> : tensor<2x8xf32>
  // expected-note @+2 {{each rank computes only the block of its own rows and columns}}
  // expected-error @+1 {{'nn.linear' op expects axis 'tp' to cut one of 'batch' and 'out', got both}}
  %0 = nn.linear %x, %w : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

// A normalization of parts.
comm.mesh @mesh <tp = 2>
// expected-note @+1 {{this is in parts over axis 'tp', as argument 0 of 'main' is declared}}
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<4x16xf32>})
    -> (tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<4x16xf32>}) {
  // expected-error @+1 {{'nn.softmax' op expects 'normalized' of operand 0 whole on every rank, got parts over axis 'tp'}}
  %0 = nn.softmax %x : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// Parts are joined along another dimension.
comm.mesh @mesh <tp = 2>
// expected-note @+1 {{this is in parts over axis 'tp', as argument 0 of 'main' is declared}}
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<4x16xf32>}) -> tensor<8x8xf32>
    {
  // expected-error @+1 {{'comm.all_gather' op expects parts along dimension 0 over axis 'tp', got parts along dimension 1}}
  %0 = comm.all_gather(%x) dim 0 over <@mesh, {tp}> : tensor<4x8xf32> -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// Parts are joined in another order.
comm.mesh @mesh <dp = 2, tp = 2>
// expected-note @+1 {{this is in parts over axis 'tp', as argument 0 of 'main' is declared}}
func.func @main(%x: tensor<2x8xf32> {comm.sharding = #comm.sharding<@mesh, [{dp, tp}, {}]>, comm.global_type = tensor<8x8xf32>}) -> tensor<8x8xf32>
    {
  // expected-error @+1 {{'comm.all_gather' op expects the minor axes of dimension 0, in their order, got a dimension in parts over axis 'dp', axis 'tp'}}
  %0 = comm.all_gather(%x) dim 0 over <@mesh, {tp, dp}> : tensor<2x8xf32> -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// A sum of parts, and over an axis that has no partial sums.
comm.mesh @mesh <dp = 2, tp = 2>
#parts = #comm.sharding<@mesh, [{dp}, {}], partial = [tp = sum]>
// expected-note @+1 {{this is in parts over axis 'dp', as argument 0 of 'main' is declared}}
func.func @main(%x: tensor<2x8xf32> {comm.sharding = #parts, comm.global_type = tensor<4x8xf32>})
    -> (tensor<2x8xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>, comm.global_type = tensor<4x8xf32>}) {
  // expected-error @+1 {{'comm.all_reduce' op expects partial sums over axis 'dp', got parts along dimension 0}}
  %0 = comm.all_reduce sum(%x) over <@mesh, {dp}> : tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// -----

// Sums of partial maxima.
comm.mesh @mesh <tp = 2>
// expected-note @+1 {{these are partial maxima over axis 'tp', as argument 0 of 'main' is declared}}
func.func @main(%x: tensor<8xf32> {comm.sharding = #comm.sharding<@mesh, [{}], partial = [tp = max]>, comm.global_type = tensor<8xf32>})
    -> tensor<8xf32> {
  // expected-error @+1 {{'comm.all_reduce' op expects partial sums over axis 'tp', got partial maxima}}
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// A shard of partial sums, and a broadcast of one rank's partial sum.
comm.mesh @mesh <tp = 2>
// expected-note @+1 {{these are partial sums over axis 'tp', as argument 0 of 'main' is declared}}
func.func @main(%x: tensor<8xf32> {comm.sharding = #comm.sharding<@mesh, [{}], partial = [tp = sum]>, comm.global_type = tensor<8xf32>})
    -> tensor<8xf32> {
  // expected-note @+2 {{the other partial sums are lost}}
  // expected-error @+1 {{'comm.broadcast' op expects the value of one rank over axis 'tp', got partial sums}}
  %0 = comm.broadcast(%x) from 0 over <@mesh, {tp}> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Only a sub-axis is reduced.
comm.mesh @mesh <tp = 4>
// expected-note @+1 {{these are partial sums over sub-axis 'tp:(2)2', as argument 0 of 'main' is declared}}
func.func @main(%x: tensor<8xf32> {comm.sharding = #comm.sharding<@mesh, [{}], partial = [tp = sum]>, comm.global_type = tensor<8xf32>})
    -> tensor<8xf32> {
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp:(1)2}> : tensor<8xf32>
  // expected-error @+1 {{'func.return' op expects the same value over sub-axis 'tp:(2)2' in result 0, as 'main' declares, got partial sums}}
  return %0 : tensor<8xf32>
}

// -----

// Declared cut along another dimension.
comm.mesh @mesh <tp = 2>
// expected-note @+1 {{this is in parts over axis 'tp', as argument 0 of 'main' is declared}}
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<4x16xf32>})
    -> (tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>, comm.global_type = tensor<8x8xf32>}) {
  // expected-error @+1 {{'func.return' op expects parts along dimension 0 over axis 'tp' in result 0, as 'main' declares, got parts along dimension 1}}
  return %x : tensor<4x8xf32>
}

// -----

// Nothing is known of what a rank receives, so that it is not the same on all ranks.
comm.mesh @mesh <pp = 2>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  comm.send(%x) pairs [0 -> 1] over <@mesh, {pp}> : tensor<8xf32>
  // expected-note @+1 {{what the ranks of axis 'pp' hold differs, and nothing more is known of it, made here}}
  %0 = comm.recv pairs [0 -> 1] over <@mesh, {pp}> : tensor<8xf32>
  // expected-error @+1 {{'func.return' op expects the same value over axis 'pp' in result 0, as 'main' declares, got values of which nothing is known}}
  return %0 : tensor<8xf32>
}

// -----

// The table of an embedding in parts, without the group that tells its rows.
comm.mesh @mesh <tp = 2>
func.func @main(%ids: tensor<2x4xi64>) -> tensor<2x4x8xf32> {
  // expected-note @+1 {{this is in parts over axis 'tp', made here}}
  %t = nn.parameter "t" of tensor<32x8xf32> sharded <@mesh, [{tp}, {}]> : tensor<16x8xf32>
  // expected-error @+1 {{'nn.embedding' op expects the rows of the table in parts over the axes that 'over' names, got parts over axis 'tp'}}
  %0 = nn.embedding %ids, %t : tensor<2x4xi64>, tensor<16x8xf32> -> tensor<2x4x8xf32>
  return %0 : tensor<2x4x8xf32>
}

// -----

// A ring of three whose parts are put together in the opposite order.
comm.mesh @mesh <tp = 3>
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>, comm.global_type = tensor<12x8xf32>})
    -> (tensor<12x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}]>, comm.global_type = tensor<12x8xf32>}) {
  %1 = comm.permute(%x) pairs [0 -> 1, 1 -> 2, 2 -> 0] over <@mesh, {tp}> : tensor<4x8xf32>
  %2 = comm.permute(%1) pairs [0 -> 1, 1 -> 2, 2 -> 0] over <@mesh, {tp}> : tensor<4x8xf32>
  // expected-error @+1 {{'comm.assemble' op expects shift -1 of operand 1, as the part that a rank holds comes from there, got 1}}
  %y = comm.assemble %x, %1, %2 shifts [0, 1, 2] dim 0 over <@mesh, {tp}> : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32> -> tensor<12x8xf32>
  return %y : tensor<12x8xf32>
}

// -----

// The steps are not the same function of the parts, so that this is no ring, and the axis cuts rows and columns.
comm.mesh @mesh <tp = 2>
func.func @main(
    // expected-note @below {{this is in parts over axis 'tp', as argument 0 of 'main' is declared}}
    %x: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>, comm.global_type = tensor<8x8xf32>})
    -> (tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<8x16xf32>}) {
  // expected-note @below {{this is in parts over axis 'tp', made here}}
  %w = nn.parameter "w" of tensor<16x8xf32> sharded <@mesh, [{tp}, {}]> : tensor<8x8xf32>
  %v = nn.parameter "v" of tensor<16x8xf32> sharded <@mesh, [{tp}, {}]> : tensor<8x8xf32>
  // expected-note @+2 {{each rank computes only the block of its own rows and columns}}
  // expected-error @+1 {{'nn.linear' op expects axis 'tp' to cut one of 'batch' and 'out', got both}}
  %0 = nn.linear %x, %w role "a" : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %n = comm.permute(%x) pairs [0 -> 1, 1 -> 0] over <@mesh, {tp}> : tensor<4x8xf32>
  %1 = nn.linear %n, %v role "b" : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %y = comm.assemble %0, %1 shifts [0, -1] dim 0 over <@mesh, {tp}> : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

// A ring of odd length whose ranks exchange in pairs: the last one has no partner.
comm.mesh @mesh <tp = 3>
func.func @main(%x: tensor<4x8xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>, comm.global_type = tensor<12x8xf32>})
    -> (tensor<12x8xf32> {nn.name = "y"}) attributes {nn.entry} {
  %1 = comm.permute(%x) pairs [0 -> 1, 1 -> 0] over <@mesh, {tp}> : tensor<4x8xf32>
  %2 = comm.permute(%1) pairs [0 -> 1, 1 -> 2, 2 -> 0] over <@mesh, {tp}> : tensor<4x8xf32>
  // expected-error @+1 {{'comm.assemble' op expects part 2 in operand 1 on the rank at position 0, got part 1}}
  %y = comm.assemble %x, %1, %2 shifts [0, -1, -2] dim 0 over <@mesh, {tp}> : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32> -> tensor<12x8xf32>
  return %y : tensor<12x8xf32>
}

// -----

comm.mesh @mesh <tp = 3>
func.func @main(%x: tensor<4x8xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>, comm.global_type = tensor<12x8xf32>})
    -> (tensor<12x8xf32> {nn.name = "y"}) attributes {nn.entry} {
  %1 = comm.permute(%x) pairs [1 -> 2, 2 -> 0] over <@mesh, {tp}> : tensor<4x8xf32>
  %2 = comm.permute(%1) pairs [0 -> 1, 1 -> 2, 2 -> 0] over <@mesh, {tp}> : tensor<4x8xf32>
  // expected-note @+2 {{no pair of a permutation on the way has this rank as its target}}
  // expected-error @+1 {{'comm.assemble' op expects part 0 in operand 1 on the rank at position 1, got zeros}}
  %y = comm.assemble %x, %1, %2 shifts [0, -1, -2] dim 0 over <@mesh, {tp}> : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32> -> tensor<12x8xf32>
  return %y : tensor<12x8xf32>
}
