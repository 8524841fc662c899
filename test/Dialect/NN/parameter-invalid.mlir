// RUN: braid-opt %s --split-input-file --verify-diagnostics

//===----------------------------------------------------------------------===//
// nn.parameter
//===----------------------------------------------------------------------===//

func.func @parameter() {
  // expected-error @+1 {{'nn.parameter' op expects a name [nn.parameter_c1]}}
  %0 = nn.parameter "" slices [] : tensor<4xf32>
  return
}

// -----

func.func @parameter() {
  // Without slices a parameter is one full tensor, which needs a name and elements.
  // expected-error @+1 {{expects the name of a checkpoint's tensor [nn.slice_attr_c1]}}
  %0 = nn.parameter "" : tensor<4xf32>
  return
}

// -----

func.func @parameter() {
  // expected-error @+1 {{expects a slice inside of tensor 'p', got offset 0 and size 0 in dimension 1 of size 0 [nn.slice_attr_c4]}}
  %0 = nn.parameter "p" : tensor<4x0xf32>
  return
}

// -----

func.func @parameter() {
  // expected-error @+1 {{'nn.parameter' op expects slices of rank 2, got tensor 'w' of rank 1 [nn.parameter_c2]}}
  %0 = nn.parameter "p" slices ["w"[4]] : tensor<4x4xf32>
  return
}

// -----

func.func @parameter() {
  // expected-error @+1 {{'nn.parameter' op expects the slice of tensor 'w' inside of shape [4, 4], got offset 1 and size 4 in dimension 0 [nn.parameter_c2]}}
  %0 = nn.parameter "p" slices ["w"[4, 4] to [1, 0]] : tensor<4x4xf32>
  return
}

// -----

func.func @parameter() {
  // expected-error @+1 {{'nn.parameter' op expects slices that do not overlap, got tensors 'a' and 'b' in one place [nn.parameter_c3]}}
  %0 = nn.parameter "p" slices ["a"[3, 4], "b"[2, 4] to [2, 0]] : tensor<4x4xf32>
  return
}

// -----

func.func @parameter() {
  // expected-error @+1 {{'nn.parameter' op expects 'global_type' and 'sharding' together [nn.parameter_c4]}}
  %0 = nn.parameter "w" of tensor<8xf32> : tensor<4xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @parameter() {
  // expected-error @+1 {{'nn.parameter' op expects 'global_type' and 'sharding' together [nn.parameter_c4]}}
  %0 = nn.parameter "w" sharded <@mesh, [{tp}]> : tensor<4xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @parameter() {
  // expected-error @+1 {{'nn.parameter' op expects a statically shaped tensor of 'f32' as global type, got 'tensor<8xbf16>' [nn.parameter_c5]}}
  %0 = nn.parameter "w" of tensor<8xbf16> sharded <@mesh, [{tp}]> : tensor<4xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @parameter() {
  // expected-error @+1 {{'nn.parameter' op expects a statically shaped tensor of 'f32' as global type, got 'tensor<?xf32>' [nn.parameter_c5]}}
  %0 = nn.parameter "w" slices [] of tensor<?xf32> sharded <@mesh, [{tp}]> : tensor<4xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @parameter() {
  // expected-error @+1 {{'nn.parameter' op global type: expects at most 2^48 elements, got 'tensor<562949953421312xf32>' [nn.parameter_c5]}}
  %0 = nn.parameter "w" slices [] of tensor<562949953421312xf32> sharded <@mesh, [{tp}]> : tensor<281474976710656xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @parameter() {
  // expected-error @+1 {{'nn.parameter' op expects a sharding without partial axes [nn.parameter_c6]}}
  %0 = nn.parameter "w" of tensor<8xf32> sharded <@mesh, [{}], partial = [tp = sum]> : tensor<8xf32>
  return
}

// -----

func.func @parameter() {
  // expected-error @+1 {{'nn.parameter' op references unknown mesh @mesh [comm.sharding_c3]}}
  %0 = nn.parameter "w" of tensor<8xf32> sharded <@mesh, [{}]> : tensor<8xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @parameter() {
  // expected-error @+1 {{'nn.parameter' op expects a sharding of 1 dimensions, got 2 [comm.sharding_c2]}}
  %0 = nn.parameter "w" of tensor<8xf32> sharded <@mesh, [{tp}, {}]> : tensor<4xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @parameter() {
  // expected-error @+1 {{'nn.parameter' op dimension 0 of size 7 does not divide over 'tp' (2 shards) [comm.sharding_c4]}}
  %0 = nn.parameter "w" of tensor<7xf32> sharded <@mesh, [{tp}]> : tensor<4xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @parameter() {
  // expected-error @+1 {{'nn.parameter' op expects result type 'tensor<4xf32>', got 'tensor<8xf32>' [nn.parameter_c6]}}
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

// nn.parameter_c6
comm.mesh @mesh <tp = 2>
func.func @open() {
  // expected-error @+1 {{'nn.parameter' op expects a sharding without open dimensions, got #comm.sharding<@mesh, [{tp, ?}]> [nn.parameter_c6]}}
  %0 = nn.parameter "w" of tensor<8xf32> sharded <@mesh, [{tp, ?}]> : tensor<4xf32>
  return
}

// -----

// nn.parameter_c7
comm.mesh @mesh <tp = 2>
func.func @partitioned() {
  // expected-error @+1 {{'nn.parameter' op expects 'stored' before partitioning only, got it beside 'sharding' [nn.parameter_c7]}}
  %0 = nn.parameter "w" of tensor<8xf32> sharded <@mesh, [{tp}]> stored <@mesh, [{tp}]> : tensor<4xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @partial() {
  // expected-error @+1 {{'nn.parameter' op expects a sharding without partial axes [nn.parameter_c7]}}
  %0 = nn.parameter "w" stored <@mesh, [{}], partial = [tp = sum]> : tensor<8xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @open() {
  // expected-error @+1 {{'nn.parameter' op expects a sharding without open dimensions, got #comm.sharding<@mesh, [{tp, ?}]> [nn.parameter_c7]}}
  %0 = nn.parameter "w" stored <@mesh, [{tp, ?}]> : tensor<8xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @uneven() {
  // expected-error @+1 {{'nn.parameter' op dimension 0 of size 7 does not divide over 'tp' (2 shards) [comm.sharding_c4]}}
  %0 = nn.parameter "w" stored <@mesh, [{tp}]> : tensor<7xf32>
  return
}

// -----

// nn.parameter_c8
comm.mesh @mesh <pp = 2>
func.func @placed() {
  // expected-error @+1 {{'nn.parameter' op 'on': expects no sharding over axis 'pp', along which only some ranks have the value [nn.parameter_c8]}}
  %0 = nn.parameter "w" of tensor<8xf32> sharded <@mesh, [{pp}]> on <@mesh, {pp = [0]}> : tensor<4xf32>
  return
}

// -----

comm.mesh @mesh <pp = 2>
func.func @placed() {
  // expected-error @+1 {{'nn.parameter' op 'on': axis 'pp' of size 2 has no coordinate 2}}
  %0 = nn.parameter "w" on <@mesh, {pp = [2]}> : tensor<4xf32>
  return
}
