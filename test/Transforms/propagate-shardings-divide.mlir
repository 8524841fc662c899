// RUN: not braid-opt %s --braid-apply-strategy="mesh=tp=4" --braid-propagate-shardings 2>&1 | FileCheck %s

// 6 heads on 4 ranks: the weights divide (24 over 4), the heads do not. The message names the operation, as the importer
// named it, the dimension and the axis.
// CHECK: error: {{.*}}'nn.split_heads' op 'encoder.layer.0.attention.query': dimension 'head' of size 6 does not divide over axis 'tp' of size 4
func.func @f(%x: tensor<4x8x24xf32>, %w: tensor<24x24xf32>) -> tensor<4x8x6x4xf32> {
  %0 = nn.linear %x, %w role "attention.query" : tensor<4x8x24xf32>, tensor<24x24xf32> -> tensor<4x8x24xf32>
  %1 = nn.split_heads %0 : tensor<4x8x24xf32> -> tensor<4x8x6x4xf32> loc("encoder.layer.0.attention.query")
  return %1 : tensor<4x8x6x4xf32>
}
