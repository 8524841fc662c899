// RUN: braid-opt %s --split-input-file --verify-diagnostics

//===----------------------------------------------------------------------===//
// nn.parameter
//===----------------------------------------------------------------------===//

func.func @parameter() {
  // C1
  // expected-error @+1 {{'nn.parameter' op expects a name}}
  %0 = nn.parameter "" slices [] : tensor<4xf32>
  return
}

// -----

func.func @parameter() {
  // Without slices it is one whole tensor, which has a name and elements.
  // expected-error @+1 {{expects the name of a checkpoint's tensor}}
  %0 = nn.parameter "" : tensor<4xf32>
  return
}

// -----

func.func @parameter() {
  // expected-error @+1 {{expects a part of tensor 'p', got offset 0 and size 0 in dimension 1 of size 0}}
  %0 = nn.parameter "p" : tensor<4x0xf32>
  return
}

// -----

func.func @parameter() {
  // C2
  // expected-error @+1 {{'nn.parameter' op expects slices of rank 2, got tensor 'w' of rank 1}}
  %0 = nn.parameter "p" slices ["w"[4]] : tensor<4x4xf32>
  return
}

// -----

func.func @parameter() {
  // C2
  // expected-error @+1 {{'nn.parameter' op expects the slice of tensor 'w' inside of shape [4, 4], got offset 1 and size 4 in dimension 0}}
  %0 = nn.parameter "p" slices ["w"[4, 4] to [1, 0]] : tensor<4x4xf32>
  return
}

// -----

func.func @parameter() {
  // C3
  // expected-error @+1 {{'nn.parameter' op expects slices that do not overlap, got tensors 'a' and 'b' in one place}}
  %0 = nn.parameter "p" slices ["a"[3, 4], "b"[2, 4] to [2, 0]] : tensor<4x4xf32>
  return
}

// -----

func.func @parameter() {
  // C4
  // expected-error @+1 {{'nn.parameter' op expects 'global_type' and 'sharding' together}}
  %0 = nn.parameter "w" of tensor<8xf32> : tensor<4xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @parameter() {
  // C4
  // expected-error @+1 {{'nn.parameter' op expects 'global_type' and 'sharding' together}}
  %0 = nn.parameter "w" sharded <@mesh, [{tp}]> : tensor<4xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @parameter() {
  // C5
  // expected-error @+1 {{'nn.parameter' op expects a statically shaped tensor of 'f32' as global type, got 'tensor<8xbf16>'}}
  %0 = nn.parameter "w" of tensor<8xbf16> sharded <@mesh, [{tp}]> : tensor<4xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @parameter() {
  // C5
  // expected-error @+1 {{'nn.parameter' op expects a statically shaped tensor of 'f32' as global type, got 'tensor<?xf32>'}}
  %0 = nn.parameter "w" slices [] of tensor<?xf32> sharded <@mesh, [{tp}]> : tensor<4xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @parameter() {
  // C5
  // expected-error @+1 {{'nn.parameter' op global type: expects at most 2^48 elements, got 'tensor<562949953421312xf32>'}}
  %0 = nn.parameter "w" slices [] of tensor<562949953421312xf32> sharded <@mesh, [{tp}]> : tensor<281474976710656xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @parameter() {
  // C6
  // expected-error @+1 {{'nn.parameter' op expects a sharding without partial axes}}
  %0 = nn.parameter "w" of tensor<8xf32> sharded <@mesh, [{}], partial = [tp = sum]> : tensor<8xf32>
  return
}

// -----

func.func @parameter() {
  // C6
  // expected-error @+1 {{'nn.parameter' op references unknown mesh @mesh}}
  %0 = nn.parameter "w" of tensor<8xf32> sharded <@mesh, [{}]> : tensor<8xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @parameter() {
  // C6
  // expected-error @+1 {{'nn.parameter' op expects a sharding of 1 dimensions, got 2}}
  %0 = nn.parameter "w" of tensor<8xf32> sharded <@mesh, [{tp}, {}]> : tensor<4xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @parameter() {
  // C6
  // expected-error @+1 {{'nn.parameter' op dimension 0 of size 7 does not divide over 'tp' (2 shards)}}
  %0 = nn.parameter "w" of tensor<7xf32> sharded <@mesh, [{tp}]> : tensor<4xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @parameter() {
  // C6
  // expected-error @+1 {{'nn.parameter' op expects result type 'tensor<4xf32>', got 'tensor<8xf32>'}}
  %0 = nn.parameter "w" of tensor<8xf32> sharded <@mesh, [{tp}]> : tensor<8xf32>
  return
}

// -----

func.func @parameter() {
  // expected-error @+1 {{expects normal, ones or zeros, got 'random'}}
  %0 = nn.parameter "w" init random : tensor<4xf32>
  return
}

// -----

// nn.parameter C6
comm.mesh @mesh <tp = 2>
func.func @open() {
  // expected-error @+1 {{'nn.parameter' op expects a sharding without open dimensions, got #comm.sharding<@mesh, [{tp, ?}]>}}
  %0 = nn.parameter "w" of tensor<8xf32> sharded <@mesh, [{tp, ?}]> : tensor<4xf32>
  return
}
