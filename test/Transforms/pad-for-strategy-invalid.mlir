// RUN: braid-opt %s --braid-pad-for-strategy --split-input-file --verify-diagnostics -o /dev/null

comm.mesh @mesh <tp = 4>
func.func @operand(%x: tensor<2x8x16xf32>, %up: tensor<6x16xf32>, %down: tensor<16x6xf32>) -> tensor<2x8x16xf32> {
  // expected-error @+1 {{'nn.linear' op cannot be padded for axis 'tp': its weight is an operand of the entry}}
  %0 = nn.linear %x, %up role "mlp.up" : tensor<2x8x16xf32>, tensor<6x16xf32> -> tensor<2x8x6xf32>
  %1 = nn.linear %0, %down role "mlp.down" : tensor<2x8x6xf32>, tensor<16x6xf32> -> tensor<2x8x16xf32>
  return %1 : tensor<2x8x16xf32>
}

// -----

comm.mesh @mesh <tp = 4>
func.func @computed(%x: tensor<2x8x16xf32>, %w: tensor<6x16xf32>) -> tensor<2x8x16xf32> {
  %up = nn.add %w, %w : tensor<6x16xf32>, tensor<6x16xf32> -> tensor<6x16xf32>
  %down = nn.parameter "down" : tensor<16x6xf32>
  // expected-error @+1 {{'nn.linear' op cannot be padded for axis 'tp': expects its weights to be parameters}}
  %0 = nn.linear %x, %up role "mlp.up" : tensor<2x8x16xf32>, tensor<6x16xf32> -> tensor<2x8x6xf32>
  %1 = nn.linear %0, %down role "mlp.down" : tensor<2x8x6xf32>, tensor<16x6xf32> -> tensor<2x8x16xf32>
  return %1 : tensor<2x8x16xf32>
}

// -----

comm.mesh @mesh <tp = 4>
func.func @stated(%x: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  // expected-error @+1 {{'nn.parameter' op cannot be padded for axis 'tp': it has a stated sharding}}
  %up = nn.parameter "up" {comm.shardings = [#comm.sharding<@mesh, [{}, {tp}]>]} : tensor<6x16xf32>
  %down = nn.parameter "down" : tensor<16x6xf32>
  %0 = nn.linear %x, %up role "mlp.up" : tensor<2x8x16xf32>, tensor<6x16xf32> -> tensor<2x8x6xf32>
  %1 = nn.linear %0, %down role "mlp.down" : tensor<2x8x6xf32>, tensor<16x6xf32> -> tensor<2x8x16xf32>
  return %1 : tensor<2x8x16xf32>
}

// -----

comm.mesh @mesh <tp = 4>
func.func @returned(%x: tensor<2x8x16xf32>) -> (tensor<2x8x16xf32>, tensor<2x8x6xf32>) {
  %up = nn.parameter "up" : tensor<6x16xf32>
  %down = nn.parameter "down" : tensor<16x6xf32>
  %0 = nn.linear %x, %up role "mlp.up" : tensor<2x8x16xf32>, tensor<6x16xf32> -> tensor<2x8x6xf32>
  %1 = nn.linear %0, %down role "mlp.down" : tensor<2x8x6xf32>, tensor<16x6xf32> -> tensor<2x8x16xf32>
  // expected-error @+1 {{'func.return' op cannot be padded for axis 'tp': expects only operations with a sharding rule between the matmuls}}
  return %1, %0 : tensor<2x8x16xf32>, tensor<2x8x6xf32>
}

// -----

comm.mesh @mesh <tp = 4>
func.func @other_operand(%x: tensor<2x8x16xf32>, %y: tensor<2x8x6xf32>) -> tensor<2x8x16xf32> {
  %up = nn.parameter "up" : tensor<6x16xf32>
  %down = nn.parameter "down" : tensor<16x6xf32>
  %0 = nn.linear %x, %up role "mlp.up" : tensor<2x8x16xf32>, tensor<6x16xf32> -> tensor<2x8x6xf32>
  // expected-error @+1 {{'nn.mul' op cannot be padded for axis 'tp': dimension 2 of operand 1 would be 8, got 6}}
  %1 = nn.mul %0, %y : tensor<2x8x6xf32>, tensor<2x8x6xf32> -> tensor<2x8x6xf32>
  %2 = nn.linear %1, %down role "mlp.down" : tensor<2x8x6xf32>, tensor<16x6xf32> -> tensor<2x8x16xf32>
  return %2 : tensor<2x8x16xf32>
}

// -----

comm.mesh @mesh <tp = 1000000>
func.func @too_large(%x: tensor<2x8x1073741824xf32>) -> tensor<2x8x16xf32> {
  %up = nn.parameter "up" : tensor<6x1073741824xf32>
  %down = nn.parameter "down" : tensor<16x6xf32>
  // expected-error @+1 {{'nn.linear' op cannot be padded for axis 'tp': it would have more than 2^48 elements}}
  %0 = nn.linear %x, %up role "mlp.up" : tensor<2x8x1073741824xf32>, tensor<6x1073741824xf32> -> tensor<2x8x6xf32>
  %1 = nn.linear %0, %down role "mlp.down" : tensor<2x8x6xf32>, tensor<16x6xf32> -> tensor<2x8x16xf32>
  return %1 : tensor<2x8x16xf32>
}

// -----

comm.mesh @mesh <tp = 4>
func.func @too_many_heads(%x: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  %qkv = nn.parameter "qkv" : tensor<131074x16xf32>
  %out = nn.parameter "out" : tensor<16x131074xf32>
  %0 = nn.linear %x, %qkv role "attention.qkv" : tensor<2x8x16xf32>, tensor<131074x16xf32> -> tensor<2x8x131074xf32>
  %1 = nn.split_heads %0 : tensor<2x8x131074xf32> -> tensor<2x8x65537x2xf32>
  // expected-error @+1 {{'nn.attention' op cannot be padded for axis 'tp': expects at most 65536 heads, got 65537}}
  %2 = nn.attention %1, %1, %1 scale 1.0 : tensor<2x8x65537x2xf32>, tensor<2x8x65537x2xf32>, tensor<2x8x65537x2xf32> -> tensor<2x8x65537x2xf32>
  %3 = nn.merge_heads %2 : tensor<2x8x65537x2xf32> -> tensor<2x8x131074xf32>
  %4 = nn.linear %3, %out role "attention.output" : tensor<2x8x131074xf32>, tensor<16x131074xf32> -> tensor<2x8x16xf32>
  return %4 : tensor<2x8x16xf32>
}

// -----

comm.mesh @mesh <tp = 1000000>
func.func @too_large_heads(%x: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  %qkv = nn.parameter "qkv" : tensor<6442450944x16xf32>
  %out = nn.parameter "out" : tensor<16x6442450944xf32>
  %0 = nn.linear %x, %qkv role "attention.qkv" : tensor<2x8x16xf32>, tensor<6442450944x16xf32> -> tensor<2x8x6442450944xf32>
  %1 = nn.split_heads %0 : tensor<2x8x6442450944xf32> -> tensor<2x8x6x1073741824xf32>
  // expected-error @+1 {{'nn.attention' op cannot be padded for axis 'tp': it would have more than 2^48 elements}}
  %2 = nn.attention %1, %1, %1 scale 1.0 : tensor<2x8x6x1073741824xf32>, tensor<2x8x6x1073741824xf32>, tensor<2x8x6x1073741824xf32> -> tensor<2x8x6x1073741824xf32>
  %3 = nn.merge_heads %2 : tensor<2x8x6x1073741824xf32> -> tensor<2x8x6442450944xf32>
  %4 = nn.linear %3, %out role "attention.output" : tensor<2x8x6442450944xf32>, tensor<16x6442450944xf32> -> tensor<2x8x16xf32>
  return %4 : tensor<2x8x16xf32>
}

// -----

comm.mesh @mesh <tp = 4>
func.func @map(%x: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  %up = nn.parameter "up" : tensor<6x16xf32>
  %down = nn.parameter "down" : tensor<16x6xf32>
  %0 = nn.linear %x, %up role "mlp.up" : tensor<2x8x16xf32>, tensor<6x16xf32> -> tensor<2x8x6xf32>
  // expected-error @+1 {{'nn.map' op cannot be padded for axis 'tp': its body may give no finite number for zeros}}
  %1 = nn.map %0 : tensor<2x8x6xf32> -> tensor<2x8x6xf32> {
  ^bb0(%a: f32):
    %log = math.log %a : f32
    nn.yield %log : f32
  }
  %2 = nn.linear %1, %down role "mlp.down" : tensor<2x8x6xf32>, tensor<16x6xf32> -> tensor<2x8x16xf32>
  return %2 : tensor<2x8x16xf32>
}

// -----

comm.mesh @mesh <tp = 4>
func.func @reduce(%x: tensor<2x8x16xf32>) -> (tensor<2x8x16xf32>, tensor<2x8xf32>) {
  %up = nn.parameter "up" : tensor<6x16xf32>
  %down = nn.parameter "down" : tensor<16x6xf32>
  %0 = nn.linear %x, %up role "mlp.up" : tensor<2x8x16xf32>, tensor<6x16xf32> -> tensor<2x8x6xf32>
  // expected-error @+1 {{'nn.reduce' op cannot be padded for axis 'tp': it may reduce what is padded}}
  %1 = nn.reduce max %0 dims [2] : tensor<2x8x6xf32> -> tensor<2x8xf32>
  %2 = nn.linear %0, %down role "mlp.down" : tensor<2x8x6xf32>, tensor<16x6xf32> -> tensor<2x8x16xf32>
  return %2, %1 : tensor<2x8x16xf32>, tensor<2x8xf32>
}

// -----

// The heads of a cache would have to be padded in every entry.
comm.mesh @mesh <tp = 2>
func.func @cache(%x: tensor<1x4x12xf32> {nn.name = "x"}, %keys: tensor<1x8x3x4xf32> {nn.name = "keys", nn.state},
                 %p: tensor<1xi32> {nn.name = "p"})
    -> (tensor<1x4x12xf32> {nn.name = "y"}, tensor<1x8x3x4xf32> {nn.name = "keys"}) attributes {nn.entry} {
  %w = nn.parameter "w" : tensor<12x12xf32>
  %q0 = nn.linear %x, %w role "attention.query" : tensor<1x4x12xf32>, tensor<12x12xf32> -> tensor<1x4x12xf32>
  %k0 = nn.linear %x, %w role "attention.key" : tensor<1x4x12xf32>, tensor<12x12xf32> -> tensor<1x4x12xf32>
  %v0 = nn.linear %x, %w role "attention.value" : tensor<1x4x12xf32>, tensor<12x12xf32> -> tensor<1x4x12xf32>
  %q = nn.split_heads %q0 : tensor<1x4x12xf32> -> tensor<1x4x3x4xf32>
  %k = nn.split_heads %k0 : tensor<1x4x12xf32> -> tensor<1x4x3x4xf32>
  %v = nn.split_heads %v0 : tensor<1x4x12xf32> -> tensor<1x4x3x4xf32>
  // expected-error @+1 {{'nn.append' op cannot be padded for axis 'tp': dimension 2 of operand 1 would be 4, got 3}}
  %keys1 = nn.append %k to %keys dim 1 at %p : tensor<1x4x3x4xf32>, tensor<1x8x3x4xf32>, tensor<1xi32>
  %values = nn.append %v to %keys1 dim 1 at %p : tensor<1x4x3x4xf32>, tensor<1x8x3x4xf32>, tensor<1xi32>
  %a = nn.attention %q, %keys1, %values scale 0.5 : tensor<1x4x3x4xf32>, tensor<1x8x3x4xf32>, tensor<1x8x3x4xf32> -> tensor<1x4x3x4xf32>
  %m = nn.merge_heads %a : tensor<1x4x3x4xf32> -> tensor<1x4x12xf32>
  %y = nn.linear %m, %w role "attention.output" : tensor<1x4x12xf32>, tensor<12x12xf32> -> tensor<1x4x12xf32>
  return %y, %keys1 : tensor<1x4x12xf32>, tensor<1x8x3x4xf32>
}
