// RUN: braid-opt %s --braid-expand-encoded | FileCheck %s
// RUN: braid-opt %s --braid-expand-encoded --remark-format=emitRemark --remarks-filter=communication -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: braid-opt %s --test-equivalence="pipeline=builtin.module(braid-expand-encoded) seed=1 tolerance=0.03" | FileCheck %s --check-prefix=SAME
// fp8e4m3 has 4 significant bits.
// What was expanded can be read again, and its placements hold.
// RUN: braid-opt %s --braid-expand-encoded | braid-opt --braid-check-placements -o /dev/null

// SAME-COUNT-1: func.func @main
comm.mesh @mesh <tp = 4, one = 1>

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x4x6x256xf32>
func.func @main(%x: tensor<2x4x6x256xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{}, {}, {}, {}], partial = [tp = sum]>, comm.global_type = tensor<2x4x6x256xf32>},
                %p: tensor<2x4x6x256xf32> {nn.name = "p", comm.sharding = #comm.sharding<@mesh, [{}, {tp}, {}, {}]>, comm.global_type = tensor<2x16x6x256xf32>},
                %l: tensor<2x4x6x256xf32> {nn.name = "l", comm.sharding = #comm.sharding<@mesh, [{}, {}, {}, {tp}]>, comm.global_type = tensor<2x4x6x1024xf32>},
                %odd: tensor<1x7x320xf32> {nn.name = "odd", comm.sharding = #comm.sharding<@mesh, [{}, {}, {}], partial = [tp = sum]>, comm.global_type = tensor<1x7x320xf32>})
    -> (tensor<2x4x6x256xf32> {nn.name = "a"},
        tensor<1x7x320xf32> {nn.name = "b"},
        tensor<1x7x320xf32> {nn.name = "c"},
        tensor<2x1x6x256xf32> {nn.name = "d", comm.sharding = #comm.sharding<@mesh, [{}, {tp}, {}, {}]>, comm.global_type = tensor<2x4x6x256xf32>},
        tensor<2x4x6x64xf32> {nn.name = "e", comm.sharding = #comm.sharding<@mesh, [{}, {}, {}, {tp}]>, comm.global_type = tensor<2x4x6x256xf32>},
        tensor<2x16x6x256xf32> {nn.name = "f"},
        tensor<2x4x6x1024xf32> {nn.name = "g"},
        tensor<2x16x6x64xf32> {nn.name = "h", comm.sharding = #comm.sharding<@mesh, [{}, {}, {}, {tp}]>, comm.global_type = tensor<2x16x6x256xf32>},
        tensor<2x1x6x1024xf32> {nn.name = "i", comm.sharding = #comm.sharding<@mesh, [{}, {tp}, {}, {}]>, comm.global_type = tensor<2x4x6x1024xf32>},
        tensor<2x4x6x256xf32> {nn.name = "j"},
        tensor<2x4x6x256xf32> {nn.name = "m", comm.sharding = #comm.sharding<@mesh, [{}, {tp}, {}, {}]>, comm.global_type = tensor<2x16x6x256xf32>}) attributes {nn.entry} {
  // 48 rows divide.
  // CHECK: %[[P:.*]] = nn.encode %[[X]] over <@mesh, {tp}> as <"int8:128"> : tensor<2x4x6x256xf32> -> tensor<4x3184xi8>
  // CHECK: %[[Q:.*]] = comm.all_to_all(%[[P]]) split 0 concat 0 over <@mesh, {tp}> role "a/all_to_all" : tensor<4x3184xi8> -> tensor<4x3184xi8>
  // What a rank adds itself is no payload, and is not encoded.
  // CHECK: %[[R:.*]] = tensor.collapse_shape %[[X]] {{\[\[}}0, 1, 2], [3{{\]\]}} : tensor<2x4x6x256xf32> into tensor<48x256xf32>
  // CHECK: %[[OWN:.*]] = comm.part %[[R]] dim 0 over <@mesh, {tp}> : tensor<48x256xf32> -> tensor<12x256xf32>
  // CHECK: %[[S:.*]] = nn.decode_sum %[[Q]] own %[[OWN]] over <@mesh, {tp}> senders 4 as <"int8:128"> of f32 : tensor<4x3184xi8>, tensor<12x256xf32> -> tensor<12x256xf32>
  // CHECK: %[[E:.*]] = nn.encode %[[S]] as <"fp8e4m3:64"> : tensor<12x256xf32> -> tensor<1x3184xi8>
  // CHECK: %[[G:.*]] = comm.all_gather(%[[E]]) dim 0 over <@mesh, {tp}> role "a/all_gather" : tensor<1x3184xi8> -> tensor<4x3184xi8>
  // CHECK: nn.decode %[[G]] as <"fp8e4m3:64"> of f32 : tensor<4x3184xi8> -> tensor<2x4x6x256xf32>
  // REMARK: comm.all_reduce 'a': encoded as int8:128/fp8e4m3:64: payloads of 15920 bytes for values of 49152
  %a = comm.all_reduce sum(%x) over <@mesh, {tp}> role "a" {comm.encoding = #comm.encoding<"int8:128/fp8e4m3:64">} : tensor<2x4x6x256xf32>
  // No part of a row has whole groups, so that the eighth row is padding.
  // CHECK: nn.encode %{{.*}} over <@mesh, {tp}> as <"int8:128"> : tensor<1x7x320xf32> -> tensor<4x688xi8>
  // CHECK: %[[ODD:.*]] = tensor.collapse_shape %{{.*}} : tensor<1x7x320xf32> into tensor<7x320xf32>
  // CHECK: %[[ONE:.*]] = nn.slice %[[ODD]] dim 0 from 0 size 1
  // CHECK: %[[EIGHT:.*]] = nn.concat %[[ODD]], %[[ONE]] dim 0 : tensor<7x320xf32>, tensor<1x320xf32> -> tensor<8x320xf32>
  // CHECK: comm.part %[[EIGHT]] dim 0 over <@mesh, {tp}> : tensor<8x320xf32> -> tensor<2x320xf32>
  // CHECK: nn.decode_sum %{{.*}} : tensor<4x688xi8>, tensor<2x320xf32> -> tensor<2x320xf32>
  // CHECK: nn.decode %{{.*}} : tensor<4x688xi8> -> tensor<1x7x320xf32>
  %b = comm.all_reduce sum(%odd) over <@mesh, {tp}> role "b" {comm.encoding = #comm.encoding<"int8:128">} : tensor<1x7x320xf32>
  // Rows are cut where that helps.
  // CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0], [1], [2, 3{{\]\]}} output_shape [1, 7, 4, 80]
  // CHECK: nn.encode %{{.*}} over <@mesh, {tp}> as <"bf16"> : tensor<1x7x4x80xf32> -> tensor<4x1136xi8>
  // CHECK: nn.decode %{{.*}} : tensor<4x1136xi8> -> tensor<1x7x4x80xf32>
  // CHECK: tensor.collapse_shape %{{.*}} : tensor<1x7x4x80xf32> into tensor<1x7x320xf32>
  %c = comm.all_reduce sum(%odd) over <@mesh, {tp}> role "c" {comm.encoding = #comm.encoding<"bf16">} : tensor<1x7x320xf32>
  // The payloads of senders follow each other.
  // CHECK: nn.encode %{{.*}} over <@mesh, {tp}> {{.*}} : tensor<2x4x6x256xf32> -> tensor<2x4x1600xi8>
  // CHECK: comm.all_to_all(%{{.*}}) split 1 concat 0 over <@mesh, {tp}> role "d" : tensor<2x4x1600xi8> -> tensor<8x1x1600xi8>
  // CHECK: %[[OWN:.*]] = comm.part %[[X]] dim 1 over <@mesh, {tp}> : tensor<2x4x6x256xf32> -> tensor<2x1x6x256xf32>
  // CHECK: nn.decode_sum %{{.*}} own %[[OWN]] over <@mesh, {tp}> senders 4 as <"int8:128"> of f32 : tensor<8x1x1600xi8>, tensor<2x1x6x256xf32> -> tensor<2x1x6x256xf32>
  %d = comm.reduce_scatter sum(%x) dim 1 over <@mesh, {tp}> role "d" {comm.encoding = #comm.encoding<"int8:128">} : tensor<2x4x6x256xf32> -> tensor<2x1x6x256xf32>
  // CHECK: nn.encode %{{.*}} over <@mesh, {tp}> as <"int8:64"> : tensor<2x4x6x4x64xf32> -> tensor<2x4x6x4x96xi8>
  // CHECK: comm.all_to_all(%{{.*}}) split 3 concat 0 {{.*}} -> tensor<8x4x6x1x96xi8>
  // CHECK: comm.part %{{.*}} dim 3 over <@mesh, {tp}> : tensor<2x4x6x4x64xf32> -> tensor<2x4x6x1x64xf32>
  // CHECK: nn.decode_sum %{{.*}} -> tensor<2x4x6x1x64xf32>
  %e = comm.reduce_scatter sum(%x) dim 3 over <@mesh, {tp}> role "e" {comm.encoding = #comm.encoding<"int8:64">} : tensor<2x4x6x256xf32> -> tensor<2x4x6x64xf32>
  // CHECK: comm.all_gather(%{{.*}}) dim 1 over <@mesh, {tp}> role "f" : tensor<2x1x6352xi8> -> tensor<2x4x6352xi8>
  // CHECK: nn.decode %{{.*}} : tensor<2x4x6352xi8> -> tensor<2x16x6x256xf32>
  %f = comm.all_gather(%p) dim 1 over <@mesh, {tp}> role "f" {comm.encoding = #comm.encoding<"int8:128">} : tensor<2x4x6x256xf32> -> tensor<2x16x6x256xf32>
  // CHECK: comm.all_gather(%{{.*}}) dim 3 {{.*}} : tensor<2x4x6x1x288xi8> -> tensor<2x4x6x4x288xi8>
  // CHECK: nn.decode %{{.*}} : tensor<2x4x6x4x288xi8> -> tensor<2x4x6x4x256xf32>
  %g = comm.all_gather(%l) dim 3 over <@mesh, {tp}> role "g" {comm.encoding = #comm.encoding<"int8:128">} : tensor<2x4x6x256xf32> -> tensor<2x4x6x1024xf32>
  // CHECK: comm.all_to_all(%{{.*}}) split 3 concat 1 {{.*}} : tensor<2x4x6x4x96xi8> -> tensor<2x16x6x1x96xi8>
  %h = comm.all_to_all(%p) split 3 concat 1 over <@mesh, {tp}> role "h" {comm.encoding = #comm.encoding<"int8:64">} : tensor<2x4x6x256xf32> -> tensor<2x16x6x64xf32>
  // CHECK: comm.all_to_all(%{{.*}}) split 1 concat 3 {{.*}} : tensor<2x4x6x1x288xi8> -> tensor<2x1x6x4x288xi8>
  %i = comm.all_to_all(%l) split 1 concat 3 over <@mesh, {tp}> role "i" {comm.encoding = #comm.encoding<"int8:128">} : tensor<2x4x6x256xf32> -> tensor<2x1x6x1024xf32>
  // CHECK: comm.broadcast(%{{.*}}) from 2 over <@mesh, {tp}> role "j" : tensor<1x12688xi8>
  %j = comm.broadcast(%p) from 2 over <@mesh, {tp}> role "j" {comm.encoding = #comm.encoding<"int8:128">} : tensor<2x4x6x256xf32>
  // CHECK: comm.all_reduce sum(%{{.*}}) over <@mesh, {one}> role "m" : tensor<2x4x6x256xf32>
  // REMARK: comm.all_reduce 'm': its group has one rank, so that nothing is sent
  %m = comm.all_reduce sum(%p) over <@mesh, {one}> role "m" {comm.encoding = #comm.encoding<"int8:128">} : tensor<2x4x6x256xf32>
  return %a, %b, %c, %d, %e, %f, %g, %h, %i, %j, %m : tensor<2x4x6x256xf32>, tensor<1x7x320xf32>, tensor<1x7x320xf32>, tensor<2x1x6x256xf32>, tensor<2x4x6x64xf32>, tensor<2x16x6x256xf32>,
      tensor<2x4x6x1024xf32>, tensor<2x16x6x64xf32>, tensor<2x1x6x1024xf32>, tensor<2x4x6x256xf32>, tensor<2x4x6x256xf32>
}

// Halves of the element type send f16, and add in f32.
// CHECK-LABEL: func.func @others
func.func @others(%p: tensor<2x4x6x256xf32>, %a: tensor<4x64xbf16>, %b: tensor<4x64xbf16>, %blocks: tensor<8x5x64xf32>, %counts: tensor<8xi32>) {
  // CHECK: comm.all_to_all(%{{.*}}, %{{.*}}) split 0 concat 0 over <@mesh, {tp}> role "two/all_to_all"
  // CHECK: nn.decode_sum %{{.*}} of bf16 : tensor<4x96xi8>, tensor<1x64xbf16> -> tensor<1x64xf32>
  // CHECK: nn.encode %{{.*}} : tensor<1x64xf32> -> tensor<1x96xi8>
  // CHECK: comm.all_gather(%{{.*}}, %{{.*}}) dim 0 over <@mesh, {tp}> role "two/all_gather"
  // CHECK: nn.decode %{{.*}} of f32 : tensor<4x96xi8> -> tensor<4x64xbf16>
  %0:2 = comm.all_reduce sum(%a, %b) over <@mesh, {tp}> role "two" {comm.encoding = #comm.encoding<"int8:128">} : tensor<4x64xbf16>, tensor<4x64xbf16>
  // CHECK: nn.encode %{{.*}} : tensor<8x5x64xf32> -> tensor<8x5x96xi8>
  // CHECK: comm.all_to_all_v(%{{.*}}) counts %{{.*}} : tensor<8xi32> over <@mesh, {tp}> role "tokens" : tensor<8x5x96xi8>
  // CHECK: nn.decode %{{.*}} of f32 absent : tensor<8x5x96xi8> -> tensor<8x5x64xf32>
  %1, %2 = comm.all_to_all_v(%blocks) counts %counts : tensor<8xi32> over <@mesh, {tp}> role "tokens" {comm.encoding = #comm.encoding<"int8:128">} : tensor<8x5x64xf32>
  // Ranks that are no target have zeros.
  // CHECK: comm.permute(%{{.*}}) pairs [0 -> 1, 2 -> 3] over <@mesh, {tp}> role "k" : tensor<1x12688xi8>
  // CHECK: nn.decode %{{.*}} of f32 absent
  %k = comm.permute(%p) pairs [0 -> 1, 2 -> 3] over <@mesh, {tp}> role "k" {comm.encoding = #comm.encoding<"int8:128">} : tensor<2x4x6x256xf32>
  // CHECK: comm.send(%{{.*}}) pairs [0 -> 1, 2 -> 3] over <@mesh, {tp}> tag 2 role "n" : tensor<1x12688xi8>
  // CHECK: %[[N:.*]] = comm.recv pairs [0 -> 1, 2 -> 3] over <@mesh, {tp}> tag 2 role "n" : tensor<1x12688xi8>
  // CHECK: nn.decode %[[N]] as <"int8:128"> of f32 absent
  comm.send(%p) pairs [0 -> 1, 2 -> 3] over <@mesh, {tp}> tag 2 role "n" {comm.encoding = #comm.encoding<"int8:128">} : tensor<2x4x6x256xf32>
  %n = comm.recv pairs [0 -> 1, 2 -> 3] over <@mesh, {tp}> tag 2 role "n" {comm.encoding = #comm.encoding<"int8:128">} : tensor<2x4x6x256xf32>
  return
}
