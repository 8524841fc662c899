// RUN: braid-opt %s --split-input-file --verify-diagnostics --braid-check-placements -o /dev/null

// Softmax over a dimension in parts. The sums are partial sums after they are multiplied by exp(own - common), and the
// logarithms of the sums by exp alone.
comm.mesh @mesh <tp = 2>
#cut = #comm.sharding<@mesh, [{}, {tp}]>
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #cut, comm.global_type = tensor<4x16xf32>})
    -> (tensor<4x8xf32> {comm.sharding = #cut, comm.global_type = tensor<4x16xf32>}, tensor<4xf32>) {
  %own, %s = nn.reduce max %x dims [1] : tensor<4x8xf32> -> tensor<4xf32>, tensor<4xf32>
  %m = comm.all_reduce max(%own) over <@mesh, {tp}> : tensor<4xf32>
  %p = nn.map %s, %own, %m : tensor<4xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32> {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %b, %c : f32
    %e = math.exp %d : f32
    %f = arith.mulf %a, %e : f32
    %same = arith.cmpf oeq, %b, %c : f32
    %g = arith.select %same, %a, %f : f32
    nn.yield %g : f32
  }
  %sum = comm.all_reduce sum(%p) over <@mesh, {tp}> : tensor<4xf32>
  %y = nn.map %x rows(%m, %sum) : tensor<4x8xf32> rows(tensor<4xf32>, tensor<4xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %e = math.exp %d : f32
    %f = arith.divf %e, %c : f32
    nn.yield %f : f32
  }
  %log = nn.map %own, %s : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    %l = math.log %b : f32
    %t = arith.addf %a, %l : f32
    nn.yield %t : f32
  }
  %exp = nn.map %log, %m : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    %d = arith.subf %a, %b : f32
    %e = math.exp %d : f32
    nn.yield %e : f32
  }
  %total = comm.all_reduce sum(%exp) over <@mesh, {tp}> : tensor<4xf32>
  return %y, %total : tensor<4x8xf32>, tensor<4xf32>
}

// -----

// Sums relative to different maxima.
comm.mesh @mesh <tp = 2>
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<4x16xf32>}) -> (tensor<4xf32>) {
  // expected-note @+1 {{these are values relative to each rank's own maximum or sum over axis 'tp', made here}}
  %m, %s = nn.reduce max %x dims [1] : tensor<4x8xf32> -> tensor<4xf32>, tensor<4xf32>
  // expected-error @+1 {{'comm.all_reduce' op expects partial sums over axis 'tp', got values relative to each rank's own maximum or sum}}
  %sum = comm.all_reduce sum(%s) over <@mesh, {tp}> : tensor<4xf32>
  return %sum : tensor<4xf32>
}

// -----

// Multiplied by exp(common - own) instead of exp(own - common).
comm.mesh @mesh <tp = 2>
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<4x16xf32>}) -> (tensor<4xf32>) {
  // expected-note @+2 {{these are values relative to each rank's own maximum or sum over axis 'tp', made here}}
  // expected-note @+1 {{these are partial maxima over axis 'tp', made here}}
  %own, %s = nn.reduce max %x dims [1] : tensor<4x8xf32> -> tensor<4xf32>, tensor<4xf32>
  %m = comm.all_reduce max(%own) over <@mesh, {tp}> : tensor<4xf32>
  // expected-note @+2 {{values relative to a rank's own maximum or sum become partial sums when they are multiplied by exp(own - common)}}
  // expected-error @+1 {{'nn.map' op expects operand 0 reduced, got values relative to each rank's own maximum or sum over axis 'tp'}}
  %p = nn.map %s, %own, %m : tensor<4xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32> {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %c, %b : f32
    %e = math.exp %d : f32
    %f = arith.mulf %a, %e : f32
    nn.yield %f : f32
  }
  %sum = comm.all_reduce sum(%p) over <@mesh, {tp}> : tensor<4xf32>
  return %sum : tensor<4xf32>
}

// -----

// The maximum of another reduction.
comm.mesh @mesh <tp = 2>
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<4x16xf32>},
    %y: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<4x16xf32>}) -> (tensor<4xf32>) {
  // expected-note @+1 {{these are values relative to each rank's own maximum or sum over axis 'tp', made here}}
  %own, %s = nn.reduce max %x dims [1] : tensor<4x8xf32> -> tensor<4xf32>, tensor<4xf32>
  // expected-note @+1 {{these are partial maxima over axis 'tp', made here}}
  %other, %t = nn.reduce max %y dims [1] : tensor<4x8xf32> -> tensor<4xf32>, tensor<4xf32>
  %m = comm.all_reduce max(%other) over <@mesh, {tp}> : tensor<4xf32>
  // expected-note @+2 {{values relative to a rank's own maximum or sum become partial sums when they are multiplied by exp(own - common)}}
  // expected-error @+1 {{'nn.map' op expects operand 0 reduced, got values relative to each rank's own maximum or sum over axis 'tp'}}
  %p = nn.map %s, %other, %m : tensor<4xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32> {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %b, %c : f32
    %e = math.exp %d : f32
    %f = arith.mulf %a, %e : f32
    nn.yield %f : f32
  }
  %sum = comm.all_reduce sum(%p) over <@mesh, {tp}> : tensor<4xf32>
  return %sum : tensor<4xf32>
}

// -----

// Averages of attention over parts of the keys are no partial sums.
comm.mesh @mesh <cp = 2>
func.func @main(%q: tensor<1x2x2x4xf32>, %k: tensor<1x4x2x4xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {cp}, {}, {}]>, comm.global_type = tensor<1x8x2x4xf32>})
    -> tensor<1x2x2x4xf32> {
  // expected-note @+1 {{these are values relative to each rank's own maximum or sum over axis 'cp', made here}}
  %a, %l = nn.attention %q, %k, %k scale 0.5 : tensor<1x2x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32> -> tensor<1x2x2x4xf32>, tensor<1x2x2xf32>
  // expected-error @+1 {{'comm.all_reduce' op expects partial sums over axis 'cp', got values relative to each rank's own maximum or sum}}
  %sum = comm.all_reduce sum(%a) over <@mesh, {cp}> : tensor<1x2x2x4xf32>
  return %sum : tensor<1x2x2x4xf32>
}

// -----

// Nor are logarithms of sums.
comm.mesh @mesh <cp = 2>
func.func @main(%q: tensor<1x2x2x4xf32>, %k: tensor<1x4x2x4xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {cp}, {}, {}]>, comm.global_type = tensor<1x8x2x4xf32>})
    -> tensor<1x2x2xf32> {
  // expected-note @+1 {{these are logarithms of partial sums over axis 'cp', made here}}
  %a, %l = nn.attention %q, %k, %k scale 0.5 : tensor<1x2x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32> -> tensor<1x2x2x4xf32>, tensor<1x2x2xf32>
  // expected-error @+1 {{'comm.all_reduce' op expects partial sums over axis 'cp', got logarithms of partial sums}}
  %sum = comm.all_reduce sum(%l) over <@mesh, {cp}> : tensor<1x2x2xf32>
  return %sum : tensor<1x2x2xf32>
}

// -----

// Which keys a causal query sees counts from the first key of all ranks.
comm.mesh @mesh <cp = 2>
func.func @main(%q: tensor<1x2x2x4xf32>,
    // expected-note @below {{this is in parts over axis 'cp', as argument 1 of 'main' is declared}}
    %k: tensor<1x4x2x4xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {cp}, {}, {}]>, comm.global_type = tensor<1x8x2x4xf32>})
    -> tensor<1x2x2xf32> {
  // expected-error @+1 {{'nn.attention' op expects 'seq_k' of operand 1 whole on every rank, got parts over axis 'cp'}}
  %a, %l = nn.attention causal %q, %k, %k scale 0.5 : tensor<1x2x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32> -> tensor<1x2x2x4xf32>, tensor<1x2x2xf32>
  return %l : tensor<1x2x2xf32>
}
