// RUN: braid-opt %s --split-input-file --braid-check-placements -o /dev/null
// RUN: braid-opt %S/../Inputs/bert-layer.mlir --braid-apply-strategy="mesh=dp=2,tp=2" --braid-propagate-shardings --braid-partition --braid-check-placements --braid-start-collectives --braid-check-placements -o /dev/null

// Column-parallel and row-parallel matmuls; the bias is added after the reduction, to shards.
comm.mesh @mesh <dp = 2, tp = 2>
#rows = #comm.sharding<@mesh, [{dp}, {}]>
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #rows, comm.global_type = tensor<8x8xf32>}, %b: tensor<8xf32>)
    -> (tensor<4x8xf32> {comm.sharding = #rows, comm.global_type = tensor<8x8xf32>}) {
  %up = nn.parameter "up" of tensor<16x8xf32> sharded <@mesh, [{tp}, {}]> : tensor<8x8xf32>
  %down = nn.parameter "down" of tensor<8x16xf32> sharded <@mesh, [{}, {tp}]> : tensor<8x8xf32>
  %0 = nn.linear %x, %up : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %1 = nn.activation gelu %0 : tensor<4x8xf32>
  %2 = nn.linear %1, %down : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %3 = comm.reduce_scatter sum(%2) dim 0 over <@mesh, {tp}> : tensor<4x8xf32> -> tensor<2x8xf32>
  %4 = nn.add %3, %b : tensor<2x8xf32>, tensor<8xf32> -> tensor<2x8xf32>
  %5 = comm.all_gather(%4) dim 0 over <@mesh, {tp}> : tensor<2x8xf32> -> tensor<4x8xf32>
  return %5 : tensor<4x8xf32>
}

// -----

// Partial sums flow through linear operations: sums of all of them, a product with a whole value, a reshape, a matmul.
comm.mesh @mesh <tp = 2>
#partial = #comm.sharding<@mesh, [{}, {}], partial = [tp = sum]>
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #partial, comm.global_type = tensor<4x8xf32>},
                %y: tensor<4x8xf32> {comm.sharding = #partial, comm.global_type = tensor<4x8xf32>}, %s: tensor<8xf32>, %w: tensor<8x8xf32>)
    -> (tensor<4x8xf32>, tensor<32xf32> {comm.sharding = #comm.sharding<@mesh, [{}], partial = [tp = sum]>, comm.global_type = tensor<32xf32>})
    {
  %0 = nn.add %x, %y : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %1 = nn.mul %0, %s : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  %2 = nn.linear %1, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %3 = tensor.collapse_shape %2 [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
  %4 = comm.all_reduce sum(%2) over <@mesh, {tp}> : tensor<4x8xf32>
  return %4, %3 : tensor<4x8xf32>, tensor<32xf32>
}

// -----

// Linalg that is linear: a sum along rows of partial sums, times a scalar.
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
comm.mesh @mesh <tp = 2>
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}], partial = [tp = sum]>, comm.global_type = tensor<4x8xf32>})
    -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<4xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%i : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %half : f32
    %s = arith.addf %b, %m : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %1 = comm.all_reduce sum(%0) over <@mesh, {tp}> : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// A softmax over columns in parts: the maximum and the sum of a row are reduced over the ranks.
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
comm.mesh @mesh <tp = 2>
#columns = #comm.sharding<@mesh, [{}, {tp}]>
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #columns, comm.global_type = tensor<4x16xf32>})
    -> (tensor<4x8xf32> {comm.sharding = #columns, comm.global_type = tensor<4x16xf32>}) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x8xf32>
  %lows = linalg.fill ins(%low : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%lows : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.maximumf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<4xf32>
  %1 = comm.all_reduce max(%0) over <@mesh, {tp}> : tensor<4xf32>
  %2 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %1 : tensor<4x8xf32>, tensor<4xf32>) outs(%all : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %f = math.exp %d : f32
    linalg.yield %f : f32
  } -> tensor<4x8xf32>
  %3 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%2 : tensor<4x8xf32>) outs(%zeros : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.addf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<4xf32>
  %4 = comm.all_reduce sum(%3) over <@mesh, {tp}> : tensor<4xf32>
  %5 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%2, %4 : tensor<4x8xf32>, tensor<4xf32>) outs(%all : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.divf %a, %b : f32
    linalg.yield %d : f32
  } -> tensor<4x8xf32>
  return %5 : tensor<4x8xf32>
}

// -----

// Sub-axes: a hierarchical reduction, and parts over two sub-axes joined in two steps.
comm.mesh @mesh <tp = 4>
func.func @main(%x: tensor<8xf32> {comm.sharding = #comm.sharding<@mesh, [{}], partial = [tp = sum]>, comm.global_type = tensor<8xf32>},
                %y: tensor<2xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}]>, comm.global_type = tensor<8xf32>})
    -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = comm.reduce_scatter sum(%x) dim 0 over <@mesh, {tp:(2)2}> : tensor<8xf32> -> tensor<4xf32>
  %1 = comm.all_reduce sum(%0) over <@mesh, {tp:(1)2}> : tensor<4xf32>
  %2 = comm.all_gather(%1) dim 0 over <@mesh, {tp:(2)2}> : tensor<4xf32> -> tensor<8xf32>
  %3 = comm.all_gather(%y) dim 0 over <@mesh, {tp:(2)2}> : tensor<2xf32> -> tensor<4xf32>
  %4 = comm.all_gather(%3) dim 0 over <@mesh, {tp:(1)2}> : tensor<4xf32> -> tensor<8xf32>
  return %2, %4 : tensor<8xf32>, tensor<8xf32>
}

// -----

// Heads in 4 parts: of 2 key/value heads and 2 query heads for each. The gather along dimension 2 tells how the axis is divided.
comm.mesh @mesh <tp = 4>
func.func @main(%x: tensor<2x3x4xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}, {tp}]>, comm.global_type = tensor<2x3x16xf32>})
    -> (tensor<2x3x1x2x2xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}, {tp:(1)2}, {tp:(2)2}, {}]>, comm.global_type = tensor<2x3x2x4x2xf32>},
        tensor<2x3x1x4x2xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}, {tp:(1)2}, {}, {}]>, comm.global_type = tensor<2x3x2x4x2xf32>})
    {
  %0 = tensor.expand_shape %x [[0], [1], [2, 3, 4]] output_shape [2, 3, 1, 2, 2] : tensor<2x3x4xf32> into tensor<2x3x1x2x2xf32>
  %1 = comm.all_gather(%0) dim 3 over <@mesh, {tp:(2)2}> : tensor<2x3x1x2x2xf32> -> tensor<2x3x1x4x2xf32>
  return %0, %1 : tensor<2x3x1x2x2xf32>, tensor<2x3x1x4x2xf32>
}

// -----

// Partial sums side by side, added by every rank: an all_reduce by hand.
#out = affine_map<(i, j) -> (j)>
#id = affine_map<(i, j) -> (i, j)>
comm.mesh @mesh <tp = 2>
func.func @main(%x: tensor<1x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}], partial = [tp = sum]>, comm.global_type = tensor<1x8xf32>})
    -> tensor<8xf32> {
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %0 = comm.all_gather(%x) dim 0 over <@mesh, {tp}> : tensor<1x8xf32> -> tensor<2x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #out], iterator_types = ["reduction", "parallel"]} ins(%0 : tensor<2x8xf32>) outs(%zero : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.addf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// A permutation of parts: the blocks of dimension 0 over dp and tp change the order of their axes.
comm.mesh @mesh <dp = 2, tp = 2>
func.func @main(%x: tensor<2xf32> {comm.sharding = #comm.sharding<@mesh, [{dp, tp}]>, comm.global_type = tensor<8xf32>})
    -> (tensor<2xf32> {comm.sharding = #comm.sharding<@mesh, [{tp, dp}]>, comm.global_type = tensor<8xf32>}) {
  %0 = comm.permute(%x) pairs [0 -> 0, 1 -> 2, 2 -> 1, 3 -> 3] over <@mesh, {dp, tp}> : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// Stages of two layers each, on ranks of their own that share each layer over tp. Along pp a weight is the stage's own, and
// along tp a received value is what was sent.
comm.mesh @mesh <pp = 2, tp = 2>
func.func private @stage(%x: tensor<4x8xf32>, %up: tensor<8x8xf32>, %down: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %0 = nn.linear %x, %up : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %1 = nn.linear %0, %down : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %2 = comm.all_reduce sum(%1) over <@mesh, {tp}> : tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %up = nn.parameter "up" of tensor<32x8xf32> sharded <@mesh, [{pp, tp}, {}]> : tensor<8x8xf32>
  %down = nn.parameter "down" of tensor<16x16xf32> sharded <@mesh, [{pp}, {tp}]> : tensor<8x8xf32>
  %0 = call @stage(%x, %up, %down) : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  comm.send(%0) pairs [0 -> 1] over <@mesh, {pp}> : tensor<4x8xf32>
  %1 = comm.recv pairs [0 -> 1] over <@mesh, {pp}> : tensor<4x8xf32>
  %2 = call @stage(%1, %up, %down) : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %3 = comm.broadcast(%2) from 1 over <@mesh, {pp}> : tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}

// -----

// A ring: nothing is known of what comes around, and the result is a rank's own.
comm.mesh @mesh <tp = 3>
#cut = #comm.sharding<@mesh, [{tp}]>
func.func @main(%x: tensor<2xf32> {comm.sharding = #cut, comm.global_type = tensor<6xf32>}) -> (tensor<2xf32> {comm.sharding = #cut, comm.global_type = tensor<6xf32>})
    {
  %0 = comm.permute(%x) pairs [0 -> 1, 1 -> 2, 2 -> 0] over <@mesh, {tp}> : tensor<2xf32>
  %1 = nn.mul %0, %x : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// Vocabulary-parallel embedding; a query's shard attends to all keys.
comm.mesh @mesh <tp = 2>
#seq = #comm.sharding<@mesh, [{}, {tp}, {}, {}]>
func.func @main(%ids: tensor<2x4xi64>, %q: tensor<2x2x2x4xf32> {comm.sharding = #seq, comm.global_type = tensor<2x4x2x4xf32>}, %k: tensor<2x4x2x4xf32>)
    -> (tensor<2x4x8xf32>, tensor<2x2x2x4xf32> {comm.sharding = #seq, comm.global_type = tensor<2x4x2x4xf32>}) {
  %t = nn.parameter "t" of tensor<32x8xf32> sharded <@mesh, [{tp}, {}]> : tensor<16x8xf32>
  %0 = nn.embedding %ids, %t over <@mesh, {tp}> : tensor<2x4xi64>, tensor<16x8xf32> -> tensor<2x4x8xf32>
  %1 = comm.all_reduce sum(%0) over <@mesh, {tp}> : tensor<2x4x8xf32>
  %2 = nn.attention %q, %k, %k scale 0.5 : tensor<2x2x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32> -> tensor<2x2x2x4xf32>
  return %1, %2 : tensor<2x4x8xf32>, tensor<2x2x2x4xf32>
}

// -----

// A ring: each rank multiplies its own part and the one that it receives by its own columns.
comm.mesh @mesh <tp = 2>
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>, comm.global_type = tensor<8x8xf32>})
    -> (tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<8x16xf32>}) {
  %w = nn.parameter "w" of tensor<16x8xf32> sharded <@mesh, [{tp}, {}]> : tensor<8x8xf32>
  %0 = nn.linear %x, %w role "a" : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %n = comm.permute(%x) pairs [0 -> 1, 1 -> 0] over <@mesh, {tp}> : tensor<4x8xf32>
  %1 = nn.linear %n, %w role "b" : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %y = comm.assemble %0, %1 shifts [0, -1] dim 0 over <@mesh, {tp}> : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
