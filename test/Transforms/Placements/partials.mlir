// RUN: braid-opt %s --split-input-file --verify-diagnostics --braid-check-placements -o /dev/null

// Partial sums are put side by side.
comm.mesh @mesh <tp = 2>
// expected-note @+1 {{these are partial sums over axis 'tp', as argument 0 of 'main' is declared}}
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}], partial = [tp = sum]>, comm.global_type = tensor<4x8xf32>})
    -> tensor<8x8xf32> {
  // expected-error @+1 {{'comm.all_gather' op expects parts along dimension 0 over axis 'tp', got partial sums}}
  %0 = comm.all_gather(%x) dim 0 over <@mesh, {tp}> : tensor<4x8xf32> -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// A rank takes its part of a sum that is not added up.
comm.mesh @mesh <tp = 2>
// expected-note @+1 {{these are partial sums over axis 'tp', as argument 0 of 'main' is declared}}
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}], partial = [tp = sum]>, comm.global_type = tensor<4x8xf32>})
    -> (tensor<2x8xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>, comm.global_type = tensor<4x8xf32>}) {
  // expected-error @+1 {{'comm.part' op expects the same value over axis 'tp', got partial sums}}
  %0 = comm.part %x dim 0 over <@mesh, {tp}> : tensor<4x8xf32> -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// -----

// Partial sums meet a weight whose outputs are cut over the same axis: a rank has a part of its own addend only.
comm.mesh @mesh <tp = 2>
// expected-note @+1 {{these are partial sums over axis 'tp', as argument 0 of 'main' is declared}}
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}], partial = [tp = sum]>, comm.global_type = tensor<4x8xf32>})
    -> (tensor<4x2xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<4x4xf32>}) {
  // expected-note @+1 {{this is in parts over axis 'tp', made here}}
  %w = nn.parameter "w" of tensor<4x8xf32> sharded <@mesh, [{tp}, {}]> : tensor<2x8xf32>
  // expected-error @+1 {{'nn.linear' op expects operands 0 and 1 reduced alike, got partial sums over axis 'tp' and parts along dimension 0}}
  %0 = nn.linear %x, %w : tensor<4x8xf32>, tensor<2x8xf32> -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

// Partial sums and partial maxima are added.
comm.mesh @mesh <tp = 2>
// expected-note @+2 {{these are partial sums over axis 'tp', as argument 0 of 'main' is declared}}
// expected-note @+2 {{these are partial maxima over axis 'tp', as argument 1 of 'main' is declared}}
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}], partial = [tp = sum]>, comm.global_type = tensor<4x8xf32>},
                %y: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}], partial = [tp = max]>, comm.global_type = tensor<4x8xf32>})
    -> tensor<4x8xf32> {
  // expected-error @+1 {{'nn.add' op expects partial values of one kind over axis 'tp', got partial sums and partial maxima}}
  %0 = nn.add %x, %y : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %1 = comm.all_reduce sum(%0) over <@mesh, {tp}> : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

// The activation of a maximum is not the maximum of activations.
comm.mesh @mesh <tp = 2>
// expected-note @+1 {{these are partial maxima over axis 'tp', as argument 0 of 'main' is declared}}
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}], partial = [tp = max]>, comm.global_type = tensor<4x8xf32>})
    -> tensor<4x8xf32> {
  // expected-error @+1 {{'nn.activation' op expects operand 0 reduced, got partial maxima over axis 'tp'}}
  %0 = nn.activation gelu %x : tensor<4x8xf32>
  %1 = comm.all_reduce max(%0) over <@mesh, {tp}> : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

// Parts over the same axes, but in the order of others.
comm.mesh @mesh <dp = 2, tp = 2>
// expected-note @+1 {{this is in parts over axis 'dp', as argument 0 of 'main' is declared}}
func.func @main(%x: tensor<2x8xf32> {comm.sharding = #comm.sharding<@mesh, [{dp, tp}, {}]>, comm.global_type = tensor<8x8xf32>})
    -> (tensor<2x8xf32> {comm.sharding = #comm.sharding<@mesh, [{tp, dp}, {}]>, comm.global_type = tensor<8x8xf32>}) {
  // expected-error @+1 {{'func.return' op expects parts along dimension 0 over axis 'dp' in result 0, as 'main' declares, got them in another order}}
  return %x : tensor<2x8xf32>
}
