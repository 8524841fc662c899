// RUN: braid-opt %s --braid-expand-encoded="message-bytes=512" | FileCheck %s
// RUN: braid-opt %s --braid-expand-encoded="message-bytes=512" --remark-format=emitRemark --remarks-filter=communication -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: braid-opt %s --braid-expand-encoded="message-bytes=512" --braid-start-collectives | FileCheck %s --check-prefix=STARTED
// RUN: braid-opt %s --test-equivalence="pipeline=builtin.module(braid-expand-encoded{message-bytes=512}) seed=1 tolerance=0.1" | FileCheck %s --check-prefix=SAME
// RUN: braid-opt %s --braid-expand-encoded="message-bytes=512" | braid-opt --braid-check-placements -o /dev/null
// RUN: braid-opt %s --braid-expand-encoded="message-bytes=64" | FileCheck %s --check-prefix=MANY
// Little is not cut, and nothing is where nothing may be.
// RUN: braid-opt %s --braid-expand-encoded --remark-format=emitRemark --remarks-filter=communication 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: braid-opt %s --braid-expand-encoded="message-bytes=0" | FileCheck %s --check-prefix=NONE
// RUN: braid-opt %s --braid-expand-encoded="message-bytes=512 most-chunks=2" | FileCheck %s --check-prefix=MOST
// RUN: not braid-opt %s --braid-expand-encoded="message-bytes=-1" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not braid-opt %s --braid-expand-encoded="most-chunks=0" 2>&1 | FileCheck %s --check-prefix=FEW

// NEGATIVE: error: expects message-bytes of at least 0 and most-chunks of at least 1, got -1 and 32
// FEW: error: expects message-bytes of at least 0 and most-chunks of at least 1, got 262144 and 0
// SAME-COUNT-1: func.func @main
// ONE-DAG: 'a': encoded as int8:128/int4:128: payloads of 5360 bytes for values of 16384, in one chunk, as there are no two of whole rows with 524288 bytes of payload
// ONE-NOT: /chunk#
// NONE-NOT: /chunk#
// NONE: role "a/all_to_all"
// NONE-NOT: /chunk#
// MOST: role "a/chunk#1/all_to_all"
// MOST-NOT: "a/chunk#2/all_to_all"
// Of many chunks, the first ones are added while later ones are encoded.
// MANY: role "a/chunk#3/all_to_all"
// MANY: nn.decode_sum
// MANY: role "a/chunk#0/all_gather"
// MANY: role "a/chunk#4/all_to_all"
// MANY: nn.decode_sum
// MANY: role "a/chunk#4/all_gather"
// MANY-NEXT: nn.decode %
comm.mesh @mesh <tp = 2>

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x8x256xf32>
func.func @main(%x: tensor<2x8x256xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{}, {}, {}], partial = [tp = sum]>, comm.global_type = tensor<2x8x256xf32>},
                %odd: tensor<15x192xf32> {nn.name = "odd", comm.sharding = #comm.sharding<@mesh, [{}, {}], partial = [tp = sum]>, comm.global_type = tensor<15x192xf32>},
                %few: tensor<1x3x1024xf32> {nn.name = "few", comm.sharding = #comm.sharding<@mesh, [{}, {}, {}], partial = [tp = sum]>, comm.global_type = tensor<1x3x1024xf32>},
                %row: tensor<256xf32> {nn.name = "row", comm.sharding = #comm.sharding<@mesh, [{}], partial = [tp = sum]>, comm.global_type = tensor<256xf32>})
    -> (tensor<2x8x256xf32> {nn.name = "a"}, tensor<15x192xf32> {nn.name = "b"}, tensor<1x3x1024xf32> {nn.name = "c"},
        tensor<256xf32> {nn.name = "d"}, tensor<2x8x256xf32> {nn.name = "e"}) attributes {nn.entry} {
  // All chunks leave, before the first one is added.
  // CHECK: %[[M:.*]] = tensor.collapse_shape %[[X]] {{\[\[}}0, 1], [2{{\]\]}} : tensor<2x8x256xf32> into tensor<16x256xf32>
  // CHECK: %[[X0:.*]] = nn.slice %[[M]] dim 0 from 0 size 8 : tensor<16x256xf32> -> tensor<8x256xf32>
  // CHECK: %[[P0:.*]] = nn.encode %[[X0]] over <@mesh, {tp}> as <"int8:128"> : tensor<8x256xf32> -> tensor<2x1072xi8>
  // CHECK: %[[Q0:.*]] = comm.all_to_all(%[[P0]]) split 0 concat 0 over <@mesh, {tp}> role "a/chunk#0/all_to_all" : tensor<2x1072xi8> -> tensor<2x1072xi8>
  // CHECK: %[[X1:.*]] = nn.slice %[[M]] dim 0 from 8 size 8
  // CHECK: %[[P1:.*]] = nn.encode %[[X1]] over <@mesh, {tp}> as <"int8:128">
  // CHECK: %[[Q1:.*]] = comm.all_to_all(%[[P1]]) {{.*}} role "a/chunk#1/all_to_all"
  // CHECK: %[[OWN:.*]] = comm.part %{{.*}} dim 0 over <@mesh, {tp}> : tensor<8x256xf32> -> tensor<4x256xf32>
  // CHECK: %[[S0:.*]] = nn.decode_sum %[[Q0]] own %[[OWN]] over <@mesh, {tp}> senders 2 as <"int8:128"> of f32 : tensor<2x1072xi8>, tensor<4x256xf32> -> tensor<4x256xf32>
  // CHECK: %[[E0:.*]] = nn.encode %[[S0]] as <"int4:128"> : tensor<4x256xf32> -> tensor<1x560xi8>
  // CHECK: %[[G0:.*]] = comm.all_gather(%[[E0]]) dim 0 over <@mesh, {tp}> role "a/chunk#0/all_gather" : tensor<1x560xi8> -> tensor<2x560xi8>
  // CHECK: nn.decode_sum %[[Q1]]
  // CHECK: %[[G1:.*]] = comm.all_gather(%{{.*}}) {{.*}} role "a/chunk#1/all_gather"
  // CHECK: %[[R0:.*]] = nn.decode %[[G0]] as <"int4:128"> of f32 : tensor<2x560xi8> -> tensor<8x256xf32>
  // CHECK: %[[R1:.*]] = nn.decode %[[G1]]
  // CHECK: %[[R:.*]] = nn.concat %[[R0]], %[[R1]] dim 0 : tensor<8x256xf32>, tensor<8x256xf32> -> tensor<16x256xf32>
  // CHECK: tensor.expand_shape %[[R]] {{\[\[}}0, 1], [2{{\]\]}} output_shape [2, 8, 256] : tensor<16x256xf32> into tensor<2x8x256xf32>
  // REMARK: comm.all_reduce 'a': encoded as int8:128/int4:128: payloads of {{.*}} bytes for values of 16384, in 2 chunks of at least 1024 bytes of payload
  // The second chunk is encoded while the first one is on its way, and so on.
  // STARTED: nn.encode
  // STARTED: comm.start
  // STARTED: role "a/chunk#0/all_to_all"
  // STARTED: nn.encode
  // STARTED: role "a/chunk#1/all_to_all"
  // STARTED: %[[Q0:.*]] = comm.wait
  // STARTED: nn.decode_sum %[[Q0]]
  // STARTED: role "a/chunk#0/all_gather"
  // STARTED: %[[Q1:.*]] = comm.wait
  // STARTED: nn.decode_sum %[[Q1]]
  // STARTED: role "a/chunk#1/all_gather"
  // STARTED: %[[G0:.*]] = comm.wait
  // STARTED: nn.decode %[[G0]]
  // STARTED: %[[G1:.*]] = comm.wait
  // STARTED: nn.decode %[[G1]]
  %a = comm.all_reduce sum(%x) over <@mesh, {tp}> role "a" {comm.encoding = #comm.encoding<"int8:128/int4:128">} : tensor<2x8x256xf32>
  // Only the last chunk is padded.
  // CHECK: nn.slice %{{.*}} dim 0 from 0 size 4 : tensor<15x192xf32>
  // CHECK: nn.slice %{{.*}} dim 0 from 4 size 6 : tensor<15x192xf32>
  // CHECK: nn.slice %{{.*}} dim 0 from 10 size 5 : tensor<15x192xf32>
  // CHECK: nn.encode %{{.*}} : tensor<5x192xf32> -> tensor<2x624xi8>
  // CHECK: nn.concat %{{.*}}, %{{.*}} dim 0 : tensor<5x192xf32>, tensor<1x192xf32> -> tensor<6x192xf32>
  // CHECK: nn.decode_sum %{{.*}} : tensor<2x624xi8>, tensor<3x192xf32> -> tensor<3x192xf32>
  // CHECK: nn.decode %{{.*}} -> tensor<5x192xf32>
  // CHECK: nn.concat %{{.*}}, %{{.*}}, %{{.*}} dim 0 : tensor<4x192xf32>, tensor<6x192xf32>, tensor<5x192xf32> -> tensor<15x192xf32>
  %b = comm.all_reduce sum(%odd) over <@mesh, {tp}> role "b" {comm.encoding = #comm.encoding<"int8:128">} : tensor<15x192xf32>
  // Pieces of rows are cut like rows.
  // CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0], [1], [2, 3{{\]\]}} output_shape [1, 3, 2, 512]
  // CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0, 1, 2], [3{{\]\]}} : tensor<1x3x2x512xf32> into tensor<6x512xf32>
  // CHECK: nn.slice %{{.*}} dim 0 from 0 size 2 : tensor<6x512xf32>
  // CHECK: tensor.expand_shape %{{.*}} : tensor<6x512xf32> into tensor<1x3x2x512xf32>
  // CHECK: tensor.collapse_shape %{{.*}} : tensor<1x3x2x512xf32> into tensor<1x3x1024xf32>
  %c = comm.all_reduce sum(%few) over <@mesh, {tp}> role "c" {comm.encoding = #comm.encoding<"int8:128">} : tensor<1x3x1024xf32>
  // Of several values, a chunk has rows of those that have some for it, and their names.
  // CHECK: comm.all_to_all(%{{.*}}) {{.*}} role "e/chunk#0/all_to_all" : tensor<2x1072xi8> -> tensor<2x1072xi8>
  // CHECK: comm.all_to_all(%{{.*}}, %{{.*}}) {{.*}} role "d/chunk#1/all_to_all+e/chunk#1/all_to_all"
  // CHECK: comm.all_gather(%{{.*}}) {{.*}} role "e/chunk#0/all_gather"
  // CHECK: comm.all_gather(%{{.*}}, %{{.*}}) {{.*}} role "d/chunk#1/all_gather+e/chunk#1/all_gather"
  // CHECK: return %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} :
  %d, %e = comm.all_reduce sum(%row, %x) over <@mesh, {tp}> role "d+e" {comm.encoding = #comm.encoding<"int8:128/int4:128">} : tensor<256xf32>, tensor<2x8x256xf32>
  return %a, %b, %c, %d, %e : tensor<2x8x256xf32>, tensor<15x192xf32>, tensor<1x3x1024xf32>, tensor<256xf32>, tensor<2x8x256xf32>
}

// Of what one step is, chunks are rows of every rank's part.
// CHECK-LABEL: func.func @steps
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x8x256xf32>
func.func @steps(%x: tensor<2x8x256xf32>, %y: tensor<2x3x256xf32>, %z: tensor<4x512xf32>)
    -> (tensor<2x4x256xf32>, tensor<2x6x256xf32>, tensor<4x256xf32>, tensor<4x1024xf32>, tensor<2x512xf32>) {
  // CHECK: %[[S:.*]] = tensor.expand_shape %[[X]] {{\[\[}}0], [1, 2], [3{{\]\]}} output_shape [2, 2, 4, 256] : tensor<2x8x256xf32> into tensor<2x2x4x256xf32>
  // CHECK: %[[X0:.*]] = nn.slice %[[S]] dim 2 from 0 size 1 : tensor<2x2x4x256xf32> -> tensor<2x2x1x256xf32>
  // CHECK: %[[P0:.*]] = nn.encode %[[X0]] over <@mesh, {tp}> as <"int8:128"> : tensor<2x2x1x256xf32> -> tensor<2x2x288xi8>
  // CHECK: %[[Q0:.*]] = comm.all_to_all(%[[P0]]) split 1 concat 0 over <@mesh, {tp}> role "f/chunk#0" : tensor<2x2x288xi8> -> tensor<4x1x288xi8>
  // CHECK: nn.slice %[[S]] dim 2 from 3 size 1
  // CHECK: role "f/chunk#3"
  // CHECK: %[[PART:.*]] = comm.part %{{.*}} dim 1 over <@mesh, {tp}> : tensor<2x2x1x256xf32> -> tensor<2x1x1x256xf32>
  // CHECK: %[[OWN:.*]] = tensor.collapse_shape %[[PART]] {{.*}} into tensor<2x1x256xf32>
  // CHECK: %[[A0:.*]] = nn.decode_sum %[[Q0]] own %[[OWN]] over <@mesh, {tp}> senders 2 as <"int8:128"> of f32 : tensor<4x1x288xi8>, tensor<2x1x256xf32> -> tensor<2x1x256xf32>
  // CHECK: %[[A1:.*]] = nn.decode_sum
  // CHECK: nn.concat %[[A0]], %[[A1]], %{{.*}}, %{{.*}} dim 1 : {{.*}} -> tensor<2x4x256xf32>
  // REMARK: comm.reduce_scatter 'f': encoded as int8:128: payloads of {{.*}}, in 4 chunks of at least 1024 bytes of payload
  %f = comm.reduce_scatter sum(%x) dim 1 over <@mesh, {tp}> role "f" {comm.encoding = #comm.encoding<"int8:128">} : tensor<2x8x256xf32> -> tensor<2x4x256xf32>
  // CHECK: nn.slice %{{.*}} dim 1 from 0 size 1 : tensor<2x3x256xf32> -> tensor<2x1x256xf32>
  // CHECK: comm.all_gather(%{{.*}}) dim 1 over <@mesh, {tp}> role "g/chunk#0" : tensor<2x1x288xi8> -> tensor<2x2x288xi8>
  // CHECK: nn.slice %{{.*}} dim 1 from 1 size 1
  // CHECK: nn.slice %{{.*}} dim 1 from 2 size 1
  // CHECK: nn.decode %{{.*}} : tensor<2x2x288xi8> -> tensor<2x2x1x256xf32>
  // CHECK: %[[G:.*]] = nn.concat %{{.*}}, %{{.*}}, %{{.*}} dim 2 : {{.*}} -> tensor<2x2x3x256xf32>
  // CHECK: tensor.collapse_shape %[[G]] {{\[\[}}0], [1, 2], [3{{\]\]}} : tensor<2x2x3x256xf32> into tensor<2x6x256xf32>
  %g = comm.all_gather(%y) dim 1 over <@mesh, {tp}> role "g" {comm.encoding = #comm.encoding<"int8:128">} : tensor<2x3x256xf32> -> tensor<2x6x256xf32>
  // Where the last dimension is divided or joined, they are rows of all.
  // CHECK: tensor.expand_shape %{{.*}} output_shape [4, 2, 256] : tensor<4x512xf32> into tensor<4x2x256xf32>
  // CHECK: nn.slice %{{.*}} dim 0 from 0 size 2 : tensor<4x2x256xf32> -> tensor<2x2x256xf32>
  // CHECK: %[[H:.*]] = nn.concat %{{.*}}, %{{.*}} dim 0 : tensor<2x1x256xf32>, tensor<2x1x256xf32> -> tensor<4x1x256xf32>
  // CHECK: tensor.collapse_shape %[[H]] {{.*}} into tensor<4x256xf32>
  %h = comm.reduce_scatter sum(%z) dim 1 over <@mesh, {tp}> role "h" {comm.encoding = #comm.encoding<"int8:128">} : tensor<4x512xf32> -> tensor<4x256xf32>
  // CHECK: nn.slice %{{.*}} dim 0 from 0 size 1 : tensor<4x1x512xf32> -> tensor<1x1x512xf32>
  // CHECK: nn.decode %{{.*}} -> tensor<1x2x512xf32>
  // CHECK: nn.concat {{.*}} dim 0 : {{.*}} -> tensor<4x2x512xf32>
  %i = comm.all_gather(%z) dim 1 over <@mesh, {tp}> role "i" {comm.encoding = #comm.encoding<"int8:128">} : tensor<4x512xf32> -> tensor<4x1024xf32>
  // Where nothing is before the dimension, the part of each rank is encoded where it is, but not that of the rank itself.
  // CHECK: %[[J:.*]] = tensor.expand_shape %{{.*}} output_shape [2, 2, 512] : tensor<4x512xf32> into tensor<2x2x512xf32>
  // CHECK: %[[J0:.*]] = nn.slice %[[J]] dim 1 from 0 size 1 : tensor<2x2x512xf32> -> tensor<2x1x512xf32>
  // CHECK: %[[J00:.*]] = nn.slice %[[J0]] dim 0 from 0 size 1 : tensor<2x1x512xf32> -> tensor<1x1x512xf32>
  // CHECK: nn.encode %[[J00]] over <@mesh, {tp}> as <"int8:128"> : tensor<1x1x512xf32> -> tensor<1x544xi8>
  // CHECK: %[[J01:.*]] = nn.slice %[[J0]] dim 0 from 1 size 1
  // CHECK: nn.encode %[[J01]] over <@mesh, {tp}> first 1 as <"int8:128"> : tensor<1x1x512xf32> -> tensor<1x544xi8>
  %j = comm.reduce_scatter sum(%z) dim 0 over <@mesh, {tp}> role "j" {comm.encoding = #comm.encoding<"int8:128">} : tensor<4x512xf32> -> tensor<2x512xf32>
  return %f, %g, %h, %i, %j : tensor<2x4x256xf32>, tensor<2x6x256xf32>, tensor<4x256xf32>, tensor<4x1024xf32>, tensor<2x512xf32>
}
