// RUN: braid-opt %s --braid-form-kernels --braid-lower-to-rt | FileCheck %s
// RUN: braid-opt %s --braid-form-kernels --braid-lower-to-rt --remark-format=emitRemark --remarks-filter=buffers -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

comm.mesh @mesh <tp = 4>

// A kernel reads the payload where the collective wrote it, and writes one where the next collective reads it.
// CHECK-LABEL: rt.procedure entry @main
// CHECK: rt.start all_to_all ins(%{{.*}}) outs(%[[SENT:.*]] : memref<4x1648xi8, #rt.space<symmetric>>)
// CHECK: %[[OUT:.*]] = rt.alloc : memref<1x3184xi8, #rt.space<symmetric>>
// CHECK-NEXT: rt.launch @decode_sum_add_encode rows 12 ins(%[[SENT]], %{{.*}} : memref<4x1648xi8, #rt.space<symmetric>>, memref<12x256xf32>) outs(%[[OUT]] : memref<1x3184xi8, #rt.space<symmetric>>)
// CHECK: rt.start all_gather ins(%[[OUT]] : memref<1x3184xi8, #rt.space<symmetric>>)
func.func @main(%p: tensor<4x1648xi8> {nn.name = "p"}, %x: tensor<2x6x256xf32> {nn.name = "x"}) -> (tensor<4x3184xi8> {nn.name = "y"}) attributes {nn.entry} {
  %h0 = comm.start (%a = %p) : tensor<4x1648xi8> -> !comm.handle<tensor<4x1648xi8>> {
    %r = comm.all_to_all(%a) split 0 concat 0 over <@mesh, {tp}> role "r" : tensor<4x1648xi8> -> tensor<4x1648xi8>
    comm.yield %r : tensor<4x1648xi8>
  }
  %0 = comm.wait %h0 keeping %p : !comm.handle<tensor<4x1648xi8>>, tensor<4x1648xi8> -> tensor<4x1648xi8>
  %1 = nn.decode_sum %0 senders 4 as <"int4:128"> of f32 : tensor<4x1648xi8> -> tensor<2x6x256xf32>
  %2 = nn.add %1, %x : tensor<2x6x256xf32>, tensor<2x6x256xf32> -> tensor<2x6x256xf32>
  %3 = nn.encode %2 as <"int8:128"> : tensor<2x6x256xf32> -> tensor<1x3184xi8>
  %h1 = comm.start (%a = %3) : tensor<1x3184xi8> -> !comm.handle<tensor<4x3184xi8>> {
    %r = comm.all_gather(%a) dim 0 over <@mesh, {tp}> role "g" : tensor<1x3184xi8> -> tensor<4x3184xi8>
    comm.yield %r : tensor<4x3184xi8>
  }
  %4 = comm.wait %h1 keeping %3 : !comm.handle<tensor<4x3184xi8>>, tensor<1x3184xi8> -> tensor<4x3184xi8>
  return %4 : tensor<4x3184xi8>
}

// Parts at one distance are taken as they are.
// CHECK-LABEL: rt.procedure @parts
// CHECK-NOT: rt.copy
// CHECK: rt.launch @decode_gelu_encode rows 2 ins(%{{.*}} : memref<2x1x96xi8, strided<[384, 96, 1]>>)
func.func @parts(%p: tensor<2x4x96xi8>) -> tensor<2x96xi8> {
  %0 = nn.slice %p dim 1 from 1 size 1 : tensor<2x4x96xi8> -> tensor<2x1x96xi8>
  %1 = nn.decode %0 as <"int8:64"> of f32 : tensor<2x1x96xi8> -> tensor<2x64xf32>
  %2 = nn.activation gelu %1 : tensor<2x64xf32>
  %3 = nn.encode %2 as <"int8:64"> : tensor<2x64xf32> -> tensor<2x96xi8>
  return %3 : tensor<2x96xi8>
}

// Others are copied, and so are those that are written.
// CHECK-LABEL: rt.procedure @apart
// CHECK: rt.copy ins(%{{.*}} : memref<2x2x96xi8, strided<[384, 96, 1]>>) outs(%[[IN:.*]] : memref<2x2x96xi8, #rt.space<local>>)
// CHECK: rt.launch @decode_gelu_encode rows 4 ins(%[[IN]] : memref<2x2x96xi8, #rt.space<local>>) outs(%[[OUT:.*]] : memref<2x2x96xi8, #rt.space<local>>)
// CHECK: rt.copy ins(%[[OUT]] : memref<2x2x96xi8, #rt.space<local>>) outs(%{{.*}} : memref<2x2x96xi8, strided<[384, 96, 1]>>)
// REMARK-COUNT-2: copies 384 bytes: a codec takes the parts of a payload at one distance
func.func @apart(%p: tensor<2x4x96xi8>) -> tensor<2x4x96xi8> {
  %0 = nn.slice %p dim 1 from 0 size 2 : tensor<2x4x96xi8> -> tensor<2x2x96xi8>
  %1 = nn.slice %p dim 1 from 2 size 2 : tensor<2x4x96xi8> -> tensor<2x2x96xi8>
  %2 = nn.decode %0 as <"int8:64"> of f32 : tensor<2x2x96xi8> -> tensor<4x64xf32>
  %3 = nn.activation gelu %2 : tensor<4x64xf32>
  %4 = nn.encode %3 as <"int8:64"> : tensor<4x64xf32> -> tensor<2x2x96xi8>
  %5 = nn.concat %4, %1 dim 1 : tensor<2x2x96xi8>, tensor<2x2x96xi8> -> tensor<2x4x96xi8>
  return %5 : tensor<2x4x96xi8>
}
