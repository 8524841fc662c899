// RUN: braid-opt %s --test-interpret -o /dev/null | FileCheck %s --check-prefix=WIDE
// RUN: braid-opt %s --test-interpret=round=true -o /dev/null | FileCheck %s --check-prefix=ROUNDED

// 256 + 1 is not representable in bf16; the sum of both additions is, but only if the first sum was kept in f32.
// WIDE: result0 = bf16[1] [258]
// ROUNDED: result0 = bf16[1] [256]
func.func @main(%x: tensor<1xbf16> {test.input = dense<256.0> : tensor<1xbf16>},
                %y: tensor<1xbf16> {test.input = dense<1.0> : tensor<1xbf16>}) -> tensor<1xbf16> {
  %0 = nn.add %x, %y : tensor<1xbf16>, tensor<1xbf16> -> tensor<1xbf16>
  %1 = nn.add %0, %y : tensor<1xbf16>, tensor<1xbf16> -> tensor<1xbf16>
  return %1 : tensor<1xbf16>
}
