// RUN: braid-opt %s --braid-expand-encoded="message-bytes=64" | FileCheck %s
// RUN: braid-opt %s --braid-expand-encoded="message-bytes=64" --remark-format=emitRemark --remarks-filter=communication -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: braid-opt %s --test-equivalence="pipeline=builtin.module(braid-expand-encoded{message-bytes=64}) seed=1 tolerance=0.03" | FileCheck %s --check-prefix=SAME
// RUN: braid-opt %s --braid-expand-encoded="message-bytes=64" | braid-opt --braid-check-placements -o /dev/null
// RUN: braid-opt %s --test-equivalence="pipeline=builtin.module(braid-expand-encoded{message-bytes=64},braid-start-collectives) seed=1 tolerance=0.03" | FileCheck %s --check-prefix=SAME
// All chunks of one tag would wait for each other.
// RUN: braid-opt %s --braid-expand-encoded="message-bytes=64" | sed 's/tag [0-9]*/tag 3/' > %t.mlir
// RUN: not braid-opt %t.mlir --test-equivalence="pipeline=builtin.module(canonicalize) seed=1" 2>&1 | FileCheck %s --check-prefix=DEADLOCK
// RUN: braid-opt %s --braid-expand-encoded="message-bytes=0" | FileCheck %s --check-prefix=NONE

// Collectives that exchange payloads in place of values, in chunks.

// SAME-COUNT-1: func.func @main
// DEADLOCK: ranks wait for each other: rank 0 waits in send {{.*}} tag 3 ('k/chunk#4') for rank 1
// NONE-NOT: /chunk#
// NONE: role "h+i"
// NONE-NOT: /chunk#
// NONE: comm.send(%{{.*}}) pairs [0 -> 1, 1 -> 2, 2 -> 0] over <@mesh, {tp}> tag 3 role "k"
// NONE-NOT: /chunk#
comm.mesh @mesh <tp = 3>

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[A:[^:]*]]: tensor<2x6x256xf32>
// CHECK-SAME: %[[B:[^:]*]]: tensor<1x9x2x64xf32>
// CHECK-SAME: %[[C:[^:]*]]: tensor<3x5x2x64xf32>
// CHECK-SAME: %[[D:[^:]*]]: tensor<3x2x8x64xf32>
// CHECK-SAME: %[[E:[^:]*]]: tensor<4x768xf32>
// CHECK-SAME: %[[F:[^:]*]]: tensor<12x256xf32>
// CHECK-SAME: %[[ROW:[^:]*]]: tensor<768xf32>
func.func @main(%a: tensor<2x6x256xf32> {nn.name = "a", comm.sharding = #comm.sharding<@mesh, [{tp}, {}, {}]>, comm.global_type = tensor<6x6x256xf32>},
                %b: tensor<1x9x2x64xf32> {nn.name = "b", comm.sharding = #comm.sharding<@mesh, [{}, {}, {tp}, {}]>, comm.global_type = tensor<1x9x6x64xf32>},
                %c: tensor<3x5x2x64xf32> {nn.name = "c", comm.sharding = #comm.sharding<@mesh, [{}, {}, {tp}, {}]>, comm.global_type = tensor<3x5x6x64xf32>},
                %d: tensor<3x2x8x64xf32> {nn.name = "d", comm.sharding = #comm.sharding<@mesh, [{}, {tp}, {}, {}]>, comm.global_type = tensor<3x6x8x64xf32>},
                %e: tensor<4x768xf32> {nn.name = "e", comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>, comm.global_type = tensor<12x768xf32>},
                %f: tensor<12x256xf32> {nn.name = "f", comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<12x768xf32>},
                %row: tensor<768xf32> {nn.name = "row"})
    -> (tensor<6x2x256xf32> {nn.name = "ya", comm.sharding = #comm.sharding<@mesh, [{}, {tp}, {}]>, comm.global_type = tensor<6x6x256xf32>},
        tensor<1x3x6x64xf32> {nn.name = "yb", comm.sharding = #comm.sharding<@mesh, [{}, {tp}, {}, {}]>, comm.global_type = tensor<1x9x6x64xf32>},
        tensor<1x5x6x64xf32> {nn.name = "yc", comm.sharding = #comm.sharding<@mesh, [{tp}, {}, {}, {}]>, comm.global_type = tensor<3x5x6x64xf32>},
        tensor<1x6x8x64xf32> {nn.name = "yd", comm.sharding = #comm.sharding<@mesh, [{tp}, {}, {}, {}]>, comm.global_type = tensor<3x6x8x64xf32>},
        tensor<12x256xf32> {nn.name = "ye", comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<12x768xf32>},
        tensor<4x768xf32> {nn.name = "yf", comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>, comm.global_type = tensor<12x768xf32>},
        tensor<3x9x2x64xf32> {nn.name = "yg"}, tensor<2x6x256xf32> {nn.name = "yh"}, tensor<768xf32> {nn.name = "yi"},
        tensor<6x6x256xf32> {nn.name = "yj"}, tensor<6x6x256xf32> {nn.name = "yk"}) attributes {nn.entry} {
  // An all_to_all is cut along the longest dimension of the part that goes to a rank: the one that is joined,
  // CHECK: %[[A0:.*]] = nn.slice %[[A]] dim 0 from 0 size 1 : tensor<2x6x256xf32> -> tensor<1x6x256xf32>
  // CHECK: %[[P:.*]] = nn.encode %[[A0]] as <"int8:128"> : tensor<1x6x256xf32> -> tensor<1x3x544xi8>
  // CHECK: comm.all_to_all(%[[P]]) split 1 concat 0 over <@mesh, {tp}> role "a/chunk#0" : tensor<1x3x544xi8> -> tensor<3x1x544xi8>
  // CHECK: role "a/chunk#1"
  // where that of each rank is decoded by itself, as the rows of a chunk are not equally far apart,
  // CHECK: %[[Q2:.*]] = nn.slice %{{.*}} dim 0 from 2 size 1 : tensor<3x1x544xi8> -> tensor<1x1x544xi8>
  // CHECK: %[[D2:.*]] = nn.decode %[[Q2]] as <"int8:128"> of f32 : tensor<1x1x544xi8> -> tensor<1x1x2x256xf32>
  // CHECK: %[[R0:.*]] = nn.concat %{{.*}}, %{{.*}}, %[[D2]] dim 0 : {{.*}} -> tensor<3x1x2x256xf32>
  // CHECK: %[[R:.*]] = nn.concat %[[R0]], %{{.*}} dim 1 : {{.*}} -> tensor<3x2x2x256xf32>
  // CHECK: tensor.collapse_shape %[[R]] {{\[\[}}0, 1], [2], [3{{\]\]}} : tensor<3x2x2x256xf32> into tensor<6x2x256xf32>
  // REMARK: comm.all_to_all 'a': encoded as int8:128: payloads of {{.*}}, in 2 chunks of at least 192 bytes of payload
  %ya = comm.all_to_all(%a) split 1 concat 0 over <@mesh, {tp}> role "a" {comm.encoding = #comm.encoding<"int8:128">} : tensor<2x6x256xf32> -> tensor<6x2x256xf32>
  // the one that is split, where the part of each rank is encoded by itself,
  // CHECK: %[[S:.*]] = tensor.expand_shape %[[B]] {{\[\[}}0], [1, 2], [3], [4{{\]\]}} output_shape [1, 3, 3, 2, 64]
  // CHECK: %[[B0:.*]] = nn.slice %[[S]] dim 2 from 0 size 1 : tensor<1x3x3x2x64xf32> -> tensor<1x3x1x2x64xf32>
  // CHECK: %[[B02:.*]] = nn.slice %[[B0]] dim 1 from 2 size 1 : tensor<1x3x1x2x64xf32> -> tensor<1x1x1x2x64xf32>
  // CHECK: %[[P2:.*]] = nn.encode %[[B02]] as <"int8:128"> : tensor<1x1x1x2x64xf32> -> tensor<1x1x1x160xi8>
  // CHECK: nn.concat %{{.*}}, %{{.*}}, %[[P2]] dim 1 : {{.*}} -> tensor<1x3x1x160xi8>
  // CHECK: comm.all_to_all(%{{.*}}) split 1 concat 2 {{.*}} role "b/chunk#0" : tensor<1x3x1x160xi8> -> tensor<1x1x3x160xi8>
  // CHECK: role "b/chunk#2"
  // CHECK: nn.decode %{{.*}} : tensor<1x1x3x160xi8> -> tensor<1x1x6x64xf32>
  // CHECK: nn.concat %{{.*}}, %{{.*}}, %{{.*}} dim 1 : {{.*}} -> tensor<1x3x6x64xf32>
  %yb = comm.all_to_all(%b) split 1 concat 2 over <@mesh, {tp}> role "b" {comm.encoding = #comm.encoding<"int8:128">} : tensor<1x9x2x64xf32> -> tensor<1x3x6x64xf32>
  // another one before them,
  // CHECK: nn.slice %[[C]] dim 1 from 0 size 1 : tensor<3x5x2x64xf32> -> tensor<3x1x2x64xf32>
  // CHECK: comm.all_to_all(%{{.*}}) split 0 concat 2 {{.*}} role "c/chunk#0" : tensor<3x1x1x160xi8> -> tensor<1x1x3x160xi8>
  // CHECK: role "c/chunk#4"
  // CHECK: nn.concat {{.*}} dim 1 : {{.*}} -> tensor<1x5x6x64xf32>
  %yc = comm.all_to_all(%c) split 0 concat 2 over <@mesh, {tp}> role "c" {comm.encoding = #comm.encoding<"int8:128">} : tensor<3x5x2x64xf32> -> tensor<1x5x6x64xf32>
  // or behind them.
  // CHECK: nn.slice %[[D]] dim 2 from 0 size 1 : tensor<3x2x8x64xf32> -> tensor<3x2x1x64xf32>
  // CHECK: comm.all_to_all(%{{.*}}) split 0 concat 1 {{.*}} role "d/chunk#0" : tensor<3x1x160xi8> -> tensor<1x3x160xi8>
  // CHECK: role "d/chunk#7"
  // CHECK: nn.concat {{.*}} dim 2 : {{.*}} -> tensor<1x6x8x64xf32>
  %yd = comm.all_to_all(%d) split 0 concat 1 over <@mesh, {tp}> role "d" {comm.encoding = #comm.encoding<"int8:128">} : tensor<3x2x8x64xf32> -> tensor<1x6x8x64xf32>
  // Columns that are divided, and joined.
  // CHECK: %[[S:.*]] = tensor.expand_shape %[[E]] {{\[\[}}0], [1, 2{{\]\]}} output_shape [4, 3, 256]
  // CHECK: nn.slice %[[S]] dim 0 from 0 size 1 : tensor<4x3x256xf32> -> tensor<1x3x256xf32>
  // CHECK: comm.all_to_all(%{{.*}}) split 1 concat 0 {{.*}} role "e/chunk#0" : tensor<1x3x288xi8> -> tensor<3x1x288xi8>
  // CHECK: nn.decode %{{.*}} : tensor<1x1x288xi8> -> tensor<1x1x256xf32>
  // CHECK: nn.concat {{.*}} dim 1 : {{.*}} -> tensor<3x4x256xf32>
  // CHECK: tensor.collapse_shape %{{.*}} : tensor<3x4x256xf32> into tensor<12x256xf32>
  %ye = comm.all_to_all(%e) split 1 concat 0 over <@mesh, {tp}> role "e" {comm.encoding = #comm.encoding<"int8:128">} : tensor<4x768xf32> -> tensor<12x256xf32>
  // CHECK: %[[S:.*]] = tensor.expand_shape %[[F]] {{\[\[}}0, 1], [2{{\]\]}} output_shape [3, 4, 256]
  // CHECK: nn.slice %[[S]] dim 1 from 0 size 1 : tensor<3x4x256xf32> -> tensor<3x1x256xf32>
  // CHECK: comm.all_to_all(%{{.*}}) split 0 concat 1 {{.*}} role "f/chunk#0" : tensor<3x1x288xi8> -> tensor<1x3x288xi8>
  // CHECK: nn.decode %{{.*}} : tensor<1x3x288xi8> -> tensor<1x3x256xf32>
  // CHECK: nn.concat {{.*}} dim 0 : {{.*}} -> tensor<4x3x256xf32>
  // CHECK: tensor.collapse_shape %{{.*}} : tensor<4x3x256xf32> into tensor<4x768xf32>
  %yf = comm.all_to_all(%f) split 0 concat 1 over <@mesh, {tp}> role "f" {comm.encoding = #comm.encoding<"int8:128">} : tensor<12x256xf32> -> tensor<4x768xf32>
  // The same dimension is split and joined.
  // CHECK: %[[S:.*]] = tensor.expand_shape %[[B]] {{.*}} output_shape [1, 3, 3, 2, 64]
  // CHECK: nn.slice %[[S]] dim 2 from 0 size 1 : tensor<1x3x3x2x64xf32> -> tensor<1x3x1x2x64xf32>
  // CHECK: comm.all_to_all(%{{.*}}) split 1 concat 1 {{.*}} role "g/chunk#0" : tensor<1x3x160xi8> -> tensor<1x3x160xi8>
  // CHECK: nn.decode %{{.*}} : tensor<1x1x160xi8> -> tensor<1x1x1x2x64xf32>
  // CHECK: nn.concat {{.*}} dim 2 : {{.*}} -> tensor<1x3x3x2x64xf32>
  // CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0], [1, 2], [3], [4{{\]\]}}
  %g = comm.all_to_all(%b) split 1 concat 1 over <@mesh, {tp}> role "g" {comm.encoding = #comm.encoding<"int8:128">} : tensor<1x9x2x64xf32> -> tensor<1x9x2x64xf32>
  %yg = comm.all_gather(%g) dim 0 over <@mesh, {tp}> : tensor<1x9x2x64xf32> -> tensor<3x9x2x64xf32>
  // What is handed on is cut into rows. Of several values, a chunk has rows of those that have some for it.
  // CHECK: %[[M:.*]] = tensor.collapse_shape %[[A]] {{\[\[}}0, 1], [2{{\]\]}} : tensor<2x6x256xf32> into tensor<12x256xf32>
  // CHECK: nn.slice %[[M]] dim 0 from 0 size 1 : tensor<12x256xf32> -> tensor<1x256xf32>
  // CHECK: comm.broadcast(%{{.*}}) from 1 over <@mesh, {tp}> role "h/chunk#0" : tensor<1x288xi8>
  // CHECK: comm.broadcast(%{{.*}}, %{{.*}}) from 1 over <@mesh, {tp}> role "h/chunk#11+i/chunk#11" : tensor<1x288xi8>, tensor<1x816xi8>
  // CHECK: %[[R:.*]] = nn.concat {{.*}} dim 0 : {{.*}} -> tensor<12x256xf32>
  // CHECK: tensor.expand_shape %[[R]] {{.*}} : tensor<12x256xf32> into tensor<2x6x256xf32>
  // REMARK: comm.broadcast 'h+i': {{.*}}, in 12 chunks of at least 64 bytes of payload
  %yh, %yi = comm.broadcast(%a, %row) from 1 over <@mesh, {tp}> role "h+i" {comm.encoding = #comm.encoding<"int8:128">} : tensor<2x6x256xf32>, tensor<768xf32>
  // CHECK: comm.permute(%{{.*}}) pairs [0 -> 1, 1 -> 2] over <@mesh, {tp}> role "j/chunk#0" : tensor<1x288xi8>
  // CHECK: nn.decode %{{.*}} as <"int8:128"> of f32 absent : tensor<1x288xi8> -> tensor<1x256xf32>
  // CHECK: role "j/chunk#11"
  %j = comm.permute(%a) pairs [0 -> 1, 1 -> 2] over <@mesh, {tp}> role "j" {comm.encoding = #comm.encoding<"int8:128">} : tensor<2x6x256xf32>
  %yj = comm.all_gather(%j) dim 0 over <@mesh, {tp}> : tensor<2x6x256xf32> -> tensor<6x6x256xf32>
  // A ring in which all ranks send first: 12 chunks, of which 4 of one tag may be sent before one is received. So each has a tag of its own,
  // the first one the message's, the others those above all tags of the module.
  // CHECK: comm.send(%{{.*}}) pairs [0 -> 1, 1 -> 2, 2 -> 0] over <@mesh, {tp}> tag 3 role "k/chunk#0" : tensor<1x288xi8>
  // CHECK: comm.send(%{{.*}}) {{.*}} tag 10 role "k/chunk#1"
  // CHECK: comm.send(%{{.*}}) {{.*}} tag 20 role "k/chunk#11"
  // REMARK: comm.send 'k': {{.*}}, in 12 chunks of at least 64 bytes of payload
  comm.send(%a) pairs [0 -> 1, 1 -> 2, 2 -> 0] over <@mesh, {tp}> tag 3 role "k" {comm.encoding = #comm.encoding<"int8:128">} : tensor<2x6x256xf32>
  // CHECK: %[[K:.*]] = comm.recv pairs [0 -> 1, 1 -> 2, 2 -> 0] over <@mesh, {tp}> tag 3 role "k#1/chunk#0" : tensor<1x288xi8>
  // CHECK: comm.recv {{.*}} tag 10 role "k#1/chunk#1"
  // CHECK: nn.decode %[[K]] as <"int8:128"> of f32 absent : tensor<1x288xi8> -> tensor<1x256xf32>
  // CHECK: comm.recv {{.*}} tag 20 role "k#1/chunk#11"
  // CHECK: nn.concat {{.*}} dim 0 : {{.*}} -> tensor<12x256xf32>
  // REMARK: comm.recv 'k#1': encoded as int8:128: payloads of 0 bytes for values of 0, in 12 chunks of at least 64 bytes of payload
  %k = comm.recv pairs [0 -> 1, 1 -> 2, 2 -> 0] over <@mesh, {tp}> tag 3 role "k#1" {comm.encoding = #comm.encoding<"int8:128">} : tensor<2x6x256xf32>
  %yk = comm.all_gather(%k) dim 0 over <@mesh, {tp}> : tensor<2x6x256xf32> -> tensor<6x6x256xf32>
  // Other messages of the tag have the same tags, and those of another one have others.
  // CHECK: comm.send(%{{.*}}) {{.*}} tag 3 role "l/chunk#0"
  // CHECK: comm.send(%{{.*}}) {{.*}} tag 10 role "l/chunk#1"
  // CHECK: comm.send(%{{.*}}) {{.*}} tag 9 role "m/chunk#0"
  // CHECK: comm.send(%{{.*}}) {{.*}} tag 21 role "m/chunk#1"
  // CHECK: comm.recv {{.*}} tag 3 role "l#1/chunk#0"
  // CHECK: comm.recv {{.*}} tag 10 role "l#1/chunk#1"
  // CHECK: comm.recv {{.*}} tag 9 role "m#1/chunk#0"
  // CHECK: comm.recv {{.*}} tag 21 role "m#1/chunk#1"
  comm.send(%e) pairs [1 -> 0] over <@mesh, {tp}> tag 3 role "l" {comm.encoding = #comm.encoding<"bf16">} : tensor<4x768xf32>
  comm.send(%e) pairs [1 -> 0] over <@mesh, {tp}> tag 9 role "m" {comm.encoding = #comm.encoding<"bf16">} : tensor<4x768xf32>
  %l = comm.recv pairs [1 -> 0] over <@mesh, {tp}> tag 3 role "l#1" {comm.encoding = #comm.encoding<"bf16">} : tensor<4x768xf32>
  %m = comm.recv pairs [1 -> 0] over <@mesh, {tp}> tag 9 role "m#1" {comm.encoding = #comm.encoding<"bf16">} : tensor<4x768xf32>
  return %ya, %yb, %yc, %yd, %ye, %yf, %yg, %yh, %yi, %yj, %yk : tensor<6x2x256xf32>, tensor<1x3x6x64xf32>, tensor<1x5x6x64xf32>, tensor<1x6x8x64xf32>, tensor<12x256xf32>, tensor<4x768xf32>, tensor<3x9x2x64xf32>,
      tensor<2x6x256xf32>, tensor<768xf32>, tensor<6x6x256xf32>, tensor<6x6x256xf32>
}

// An all_to_all_v is not cut.
// CHECK-LABEL: func.func @counted
func.func @counted(%blocks: tensor<6x5x64xf32>, %counts: tensor<6xi32>) -> tensor<6x5x64xf32> {
  // CHECK: comm.all_to_all_v(%{{.*}}) {{.*}} role "tokens" : tensor<6x5x96xi8>
  // REMARK: comm.all_to_all_v 'tokens': {{.*}}, in one chunk, as counts say how much is sent
  %0, %1 = comm.all_to_all_v(%blocks) counts %counts : tensor<6xi32> over <@mesh, {tp}> role "tokens" {comm.encoding = #comm.encoding<"int8:128">} : tensor<6x5x64xf32>
  return %0 : tensor<6x5x64xf32>
}
