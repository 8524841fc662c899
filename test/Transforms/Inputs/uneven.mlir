// A decoder of two layers with a sequence of 7 and a batch of 3. The norm of the last token follows the layers.
func.func @main(%ids: tensor<3x7xi64> {nn.name = "input_ids", test.range = array<i64: 0, 10>},
                %mask: tensor<3x7xi64> {nn.name = "mask", test.range = array<i64: 0, 2>})
    -> (tensor<3x7x10xf32> {nn.name = "logits"}, tensor<3x1x8xf32> {nn.name = "last"}) attributes {nn.entry} {
  %table = nn.parameter "table" : tensor<10x8xf32>
  %positions = nn.parameter "positions" : tensor<7x8xf32>
  %word = nn.embedding %ids, %table role "embedding.word" : tensor<3x7xi64>, tensor<10x8xf32> -> tensor<3x7x8xf32>
  %x = nn.add %word, %positions : tensor<3x7x8xf32>, tensor<7x8xf32> -> tensor<3x7x8xf32>
  %cos, %sin = nn.rotary_table [1.0, 0.25] : tensor<7x2xf32>
  %n0 = nn.parameter "n0" : tensor<8xf32>
  %q0 = nn.parameter "q0" : tensor<8x8xf32>
  %k0 = nn.parameter "k0" : tensor<8x8xf32>
  %o0 = nn.parameter "o0" : tensor<8x8xf32>
  %u0 = nn.parameter "u0" : tensor<12x8xf32>
  %d0 = nn.parameter "d0" : tensor<8x12xf32>
  %n1 = nn.parameter "n1" : tensor<8xf32>
  %q1 = nn.parameter "q1" : tensor<8x8xf32>
  %k1 = nn.parameter "k1" : tensor<8x8xf32>
  %o1 = nn.parameter "o1" : tensor<8x8xf32>
  %u1 = nn.parameter "u1" : tensor<12x8xf32>
  %d1 = nn.parameter "d1" : tensor<8x12xf32>
  %a = call @layer(%x, %mask, %cos, %sin, %n0, %q0, %k0, %o0, %u0, %d0) : (tensor<3x7x8xf32>, tensor<3x7xi64>, tensor<7x2xf32>, tensor<7x2xf32>, tensor<8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<12x8xf32>, tensor<8x12xf32>) -> tensor<3x7x8xf32>
  %b = call @layer(%a, %mask, %cos, %sin, %n1, %q1, %k1, %o1, %u1, %d1) : (tensor<3x7x8xf32>, tensor<3x7xi64>, tensor<7x2xf32>, tensor<7x2xf32>, tensor<8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<12x8xf32>, tensor<8x12xf32>) -> tensor<3x7x8xf32>
  %logits = nn.linear %b, %table role "lm_head" : tensor<3x7x8xf32>, tensor<10x8xf32> -> tensor<3x7x10xf32>
  %last = nn.last_token %b mask %mask : tensor<3x7x8xf32>, tensor<3x7xi64> -> tensor<3x1x8xf32>
  %normed = nn.rms_norm %last, %n0 epsilon 1.0e-3 : tensor<3x1x8xf32>, tensor<8xf32> -> tensor<3x1x8xf32>
  return %logits, %normed : tensor<3x7x10xf32>, tensor<3x1x8xf32>
}
func.func private @layer(%x: tensor<3x7x8xf32>, %mask: tensor<3x7xi64>, %cos: tensor<7x2xf32>, %sin: tensor<7x2xf32>, %n: tensor<8xf32>,
                         %wq: tensor<8x8xf32>, %wk: tensor<8x8xf32>, %wo: tensor<8x8xf32>, %wu: tensor<12x8xf32>,
                         %wd: tensor<8x12xf32>) -> tensor<3x7x8xf32> {
  %h = nn.rms_norm %x, %n epsilon 1.0e-3 : tensor<3x7x8xf32>, tensor<8xf32> -> tensor<3x7x8xf32>
  %q = nn.linear %h, %wq role "attention.query" : tensor<3x7x8xf32>, tensor<8x8xf32> -> tensor<3x7x8xf32>
  %k = nn.linear %h, %wk role "attention.key" : tensor<3x7x8xf32>, tensor<8x8xf32> -> tensor<3x7x8xf32>
  %qs = nn.split_heads %q : tensor<3x7x8xf32> -> tensor<3x7x2x4xf32>
  %ks = nn.split_heads %k : tensor<3x7x8xf32> -> tensor<3x7x2x4xf32>
  %qr = nn.rotary %qs, %cos, %sin : tensor<3x7x2x4xf32>, tensor<7x2xf32>
  %at = nn.attention causal %qr, %ks, %ks mask %mask : tensor<3x7xi64> scale 0.5 : tensor<3x7x2x4xf32>, tensor<3x7x2x4xf32>, tensor<3x7x2x4xf32> -> tensor<3x7x2x4xf32>
  %am = nn.merge_heads %at : tensor<3x7x2x4xf32> -> tensor<3x7x8xf32>
  %o = nn.linear %am, %wo role "attention.output" : tensor<3x7x8xf32>, tensor<8x8xf32> -> tensor<3x7x8xf32>
  %r = nn.add %o, %x : tensor<3x7x8xf32>, tensor<3x7x8xf32> -> tensor<3x7x8xf32>
  %u = nn.linear %r, %wu role "mlp.up" : tensor<3x7x8xf32>, tensor<12x8xf32> -> tensor<3x7x12xf32>
  %g = nn.activation gelu %u : tensor<3x7x12xf32>
  %d = nn.linear %g, %wd role "mlp.down" : tensor<3x7x12xf32>, tensor<8x12xf32> -> tensor<3x7x8xf32>
  %y = nn.add %d, %r : tensor<3x7x8xf32>, tensor<3x7x8xf32> -> tensor<3x7x8xf32>
  return %y : tensor<3x7x8xf32>
}
