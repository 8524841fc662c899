// RUN: braid-opt %s --braid-partition --split-input-file --verify-diagnostics -o /dev/null

// expected-error @+1 {{expects a comm.mesh in the module (braid-apply-strategy makes one)}}
module {
  func.func @f() { return }
}

// -----

comm.mesh @mesh <tp = 2>
// expected-error @+1 {{'comm.mesh' op expects one mesh in a module, got a second beside 'mesh'}}
comm.mesh @other <tp = 2>

// -----

comm.mesh @mesh <tp = 2>
// expected-error @+1 {{'func.func' op argument 0 has no sharding (braid-propagate-shardings states one)}}
func.func @f(%x: tensor<8x16xf32>) { return }

// -----

comm.mesh @mesh <tp = 2>
func.func @f(%x: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}]>}) {
  // expected-error @+1 {{'nn.activation' op has no sharding for result 0 (braid-propagate-shardings states one)}}
  %0 = nn.activation gelu %x : tensor<8x16xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @f() {
  // expected-error @+1 {{'nn.parameter' op has no sharding (braid-propagate-shardings states one)}}
  %0 = nn.parameter "w" : tensor<8xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
// expected-error @+1 {{'func.func' op is partitioned already}}
func.func @f(%x: tensor<8x8xf32> {comm.global_type = tensor<8x16xf32>, comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>}) { return }

// -----

comm.mesh @mesh <tp = 2>
func.func @f(%x: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}]>}) {
  // expected-error @+1 {{'comm.all_reduce' op is not expected before partitioning}}
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<8x16xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @f(%x: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}]>}) {
  // expected-error @+1 {{'nn.activation' op states a result that is partial over axis 'tp', which none of its operands accounts for}}
  %0 = nn.activation gelu %x {comm.shardings = [#comm.sharding<@mesh, [{}, {}], partial = [tp = sum]>]} : tensor<8x16xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @f(%x: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}]>}, %p: i1) {
  scf.if %p {
    // expected-error @+1 {{'func.call' op is not expected inside 'scf.if', which runs replicated on every rank}}
    func.call @g() : () -> ()
  }
  return
}
func.func private @g() { return }

// -----

comm.mesh @mesh <tp = 2>
// expected-error @+1 {{'func.func' op expects one block to partition, got 2}}
func.func @f() {
  cf.br ^bb1
^bb1:
  return
}

// -----

comm.mesh @mesh <tp = 2>
// expected-error @+1 {{'func.func' op result 0 expects a sharding without partial axes}}
func.func private @f() -> (tensor<8xf32> {comm.sharding = #comm.sharding<@mesh, [{}], partial = [tp = sum]>})

// -----

// A partial value that is sharded over dp is not a partial value of the full tensor.
comm.mesh @mesh <dp = 2, tp = 2>
func.func @other_part(%x: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {tp}]>}, %w: tensor<16x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}]>}) {
  %0 = nn.linear %x, %w {comm.shardings = [#comm.sharding<@mesh, [{dp}, {}], partial = [tp = sum]>]} : tensor<8x16xf32>, tensor<16x16xf32> -> tensor<8x16xf32>
  // expected-error @+1 {{'nn.add' op takes operand 0 as #comm.sharding<@mesh, [{}, {}], partial = [tp = sum]>, which is #comm.sharding<@mesh, [{dp}, {}], partial = [tp = sum]> and does not become that}}
  %1 = nn.add %0, %0 {comm.shardings = [#comm.sharding<@mesh, [{}, {}], partial = [tp = sum]>]} : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}

// -----

// Elements of type index have no width, so collectives cannot carry them.
comm.mesh @mesh <tp = 2>
// expected-error @+1 {{'comm.all_to_all' op operand #0 must be variadic of statically shaped tensor of at most 2^48 integers or floats of at most 64 bits, but got 'tensor<4x4xindex>'}}
func.func @index(%x: tensor<8x4xindex> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>})
    -> (tensor<8x4xindex> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>}) {
  return %x : tensor<8x4xindex>
}
