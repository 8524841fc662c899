// Attention over keys that ranks hold parts of (context parallelism). A rank attends to its own keys, and has the logarithms of
// the sums by which its averages are divided. Times exp(own logarithm - largest one), averages become partial sums, and these
// weights are the partial sums of what the sum is divided by. The ranks exchange results instead of keys and values.
comm.mesh @mesh <cp = 2>
func.func @main(
    %x: tensor<2x6x32xf32> {nn.name = "x"},
    %context: tensor<2x8x32xf32> {nn.name = "context", comm.global_type = tensor<2x16x32xf32>, comm.sharding = #comm.sharding<@mesh, [{}, {cp}, {}]>},
    %mask: tensor<2x8xi64> {nn.name = "mask", nn.below = 2 : i64, comm.global_type = tensor<2x16xi64>, comm.sharding = #comm.sharding<@mesh, [{}, {cp}]>})
    -> (tensor<2x6x32xf32> {nn.name = "y"}) attributes {nn.entry} {
  %wq = nn.parameter "query" : tensor<32x32xf32>
  %wk = nn.parameter "key" : tensor<16x32xf32>
  %wv = nn.parameter "value" : tensor<16x32xf32>
  %q0 = nn.linear %x, %wq : tensor<2x6x32xf32>, tensor<32x32xf32> -> tensor<2x6x32xf32>
  %k0 = nn.linear %context, %wk : tensor<2x8x32xf32>, tensor<16x32xf32> -> tensor<2x8x16xf32>
  %v0 = nn.linear %context, %wv : tensor<2x8x32xf32>, tensor<16x32xf32> -> tensor<2x8x16xf32>
  %q = nn.split_heads %q0 : tensor<2x6x32xf32> -> tensor<2x6x4x8xf32>
  %k = nn.split_heads %k0 : tensor<2x8x16xf32> -> tensor<2x8x2x8xf32>
  %v = nn.split_heads %v0 : tensor<2x8x16xf32> -> tensor<2x8x2x8xf32>
  %own, %log = nn.attention %q, %k, %v mask %mask : tensor<2x8xi64> scale 0.35
      : tensor<2x6x4x8xf32>, tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32> -> tensor<2x6x4x8xf32>, tensor<2x6x4xf32>
  %largest = comm.all_reduce max(%log) over <@mesh, {cp}> role "attention.largest" : tensor<2x6x4xf32>
  // Two ranks without a key have logarithms of -infinity, whose difference is no number.
  %weight = nn.map %log, %largest : tensor<2x6x4xf32>, tensor<2x6x4xf32> -> tensor<2x6x4xf32> {
  ^bb0(%l: f32, %m: f32):
    %one = arith.constant 1.0 : f32
    %d = arith.subf %l, %m : f32
    %e = math.exp %d : f32
    %equal = arith.cmpf oeq, %l, %m : f32
    %w = arith.select %equal, %one, %e : f32
    nn.yield %w : f32
  }
  %scaled = nn.map %own rows(%weight) : tensor<2x6x4x8xf32> rows(tensor<2x6x4xf32>) -> tensor<2x6x4x8xf32> {
  ^bb0(%a: f32, %w: f32):
    %s = arith.mulf %a, %w : f32
    nn.yield %s : f32
  }
  %sum, %weights = comm.all_reduce sum(%scaled, %weight) over <@mesh, {cp}> role "attention.context" : tensor<2x6x4x8xf32>, tensor<2x6x4xf32>
  %average = nn.map %sum rows(%weights) : tensor<2x6x4x8xf32> rows(tensor<2x6x4xf32>) -> tensor<2x6x4x8xf32> {
  ^bb0(%a: f32, %w: f32):
    %s = arith.divf %a, %w : f32
    nn.yield %s : f32
  }
  %y = nn.merge_heads %average : tensor<2x6x4x8xf32> -> tensor<2x6x32xf32>
  return %y : tensor<2x6x32xf32>
}
