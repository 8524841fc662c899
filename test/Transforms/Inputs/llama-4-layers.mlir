func.func @main(%input_ids: tensor<2x8xi64> {nn.name = "input_ids"}, %attention_mask: tensor<2x8xi64> {nn.name = "attention_mask"})
    -> (tensor<2x8x32xf32> {nn.name = "logits"}) attributes {nn.entry} {
  %words = nn.parameter "model.embed_tokens.weight" : tensor<32x16xf32>
  %cos, %sin = nn.rotary_table [1.0, 0.01] : tensor<8x2xf32>
  %h0 = nn.embedding %input_ids, %words role "embedding.word" : tensor<2x8xi64>, tensor<32x16xf32> -> tensor<2x8x16xf32>
  %p0_0 = nn.parameter "model.layers.0.input_layernorm.weight" init ones : tensor<16xf32>
  %p0_1 = nn.parameter "model.layers.0.self_attn.q_proj.weight" : tensor<16x16xf32>
  %p0_2 = nn.parameter "model.layers.0.self_attn.k_proj.weight" : tensor<8x16xf32>
  %p0_3 = nn.parameter "model.layers.0.self_attn.v_proj.weight" : tensor<8x16xf32>
  %p0_4 = nn.parameter "model.layers.0.self_attn.o_proj.weight" : tensor<16x16xf32>
  %p0_5 = nn.parameter "model.layers.0.post_attention_layernorm.weight" init ones : tensor<16xf32>
  %p0_6 = nn.parameter "model.layers.0.mlp.gate_proj.weight" : tensor<32x16xf32>
  %p0_7 = nn.parameter "model.layers.0.mlp.up_proj.weight" : tensor<32x16xf32>
  %p0_8 = nn.parameter "model.layers.0.mlp.down_proj.weight" : tensor<16x32xf32>
  %h1 = call @layer(%h0, %attention_mask, %cos, %sin, %p0_0, %p0_1, %p0_2, %p0_3, %p0_4, %p0_5, %p0_6, %p0_7, %p0_8)
      : (tensor<2x8x16xf32>, tensor<2x8xi64>, tensor<8x2xf32>, tensor<8x2xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<32x16xf32>, tensor<32x16xf32>, tensor<16x32xf32>) -> tensor<2x8x16xf32>
  %p1_0 = nn.parameter "model.layers.1.input_layernorm.weight" init ones : tensor<16xf32>
  %p1_1 = nn.parameter "model.layers.1.self_attn.q_proj.weight" : tensor<16x16xf32>
  %p1_2 = nn.parameter "model.layers.1.self_attn.k_proj.weight" : tensor<8x16xf32>
  %p1_3 = nn.parameter "model.layers.1.self_attn.v_proj.weight" : tensor<8x16xf32>
  %p1_4 = nn.parameter "model.layers.1.self_attn.o_proj.weight" : tensor<16x16xf32>
  %p1_5 = nn.parameter "model.layers.1.post_attention_layernorm.weight" init ones : tensor<16xf32>
  %p1_6 = nn.parameter "model.layers.1.mlp.gate_proj.weight" : tensor<32x16xf32>
  %p1_7 = nn.parameter "model.layers.1.mlp.up_proj.weight" : tensor<32x16xf32>
  %p1_8 = nn.parameter "model.layers.1.mlp.down_proj.weight" : tensor<16x32xf32>
  %h2 = call @layer(%h1, %attention_mask, %cos, %sin, %p1_0, %p1_1, %p1_2, %p1_3, %p1_4, %p1_5, %p1_6, %p1_7, %p1_8)
      : (tensor<2x8x16xf32>, tensor<2x8xi64>, tensor<8x2xf32>, tensor<8x2xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<32x16xf32>, tensor<32x16xf32>, tensor<16x32xf32>) -> tensor<2x8x16xf32>
  %p2_0 = nn.parameter "model.layers.2.input_layernorm.weight" init ones : tensor<16xf32>
  %p2_1 = nn.parameter "model.layers.2.self_attn.q_proj.weight" : tensor<16x16xf32>
  %p2_2 = nn.parameter "model.layers.2.self_attn.k_proj.weight" : tensor<8x16xf32>
  %p2_3 = nn.parameter "model.layers.2.self_attn.v_proj.weight" : tensor<8x16xf32>
  %p2_4 = nn.parameter "model.layers.2.self_attn.o_proj.weight" : tensor<16x16xf32>
  %p2_5 = nn.parameter "model.layers.2.post_attention_layernorm.weight" init ones : tensor<16xf32>
  %p2_6 = nn.parameter "model.layers.2.mlp.gate_proj.weight" : tensor<32x16xf32>
  %p2_7 = nn.parameter "model.layers.2.mlp.up_proj.weight" : tensor<32x16xf32>
  %p2_8 = nn.parameter "model.layers.2.mlp.down_proj.weight" : tensor<16x32xf32>
  %h3 = call @layer(%h2, %attention_mask, %cos, %sin, %p2_0, %p2_1, %p2_2, %p2_3, %p2_4, %p2_5, %p2_6, %p2_7, %p2_8)
      : (tensor<2x8x16xf32>, tensor<2x8xi64>, tensor<8x2xf32>, tensor<8x2xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<32x16xf32>, tensor<32x16xf32>, tensor<16x32xf32>) -> tensor<2x8x16xf32>
  %p3_0 = nn.parameter "model.layers.3.input_layernorm.weight" init ones : tensor<16xf32>
  %p3_1 = nn.parameter "model.layers.3.self_attn.q_proj.weight" : tensor<16x16xf32>
  %p3_2 = nn.parameter "model.layers.3.self_attn.k_proj.weight" : tensor<8x16xf32>
  %p3_3 = nn.parameter "model.layers.3.self_attn.v_proj.weight" : tensor<8x16xf32>
  %p3_4 = nn.parameter "model.layers.3.self_attn.o_proj.weight" : tensor<16x16xf32>
  %p3_5 = nn.parameter "model.layers.3.post_attention_layernorm.weight" init ones : tensor<16xf32>
  %p3_6 = nn.parameter "model.layers.3.mlp.gate_proj.weight" : tensor<32x16xf32>
  %p3_7 = nn.parameter "model.layers.3.mlp.up_proj.weight" : tensor<32x16xf32>
  %p3_8 = nn.parameter "model.layers.3.mlp.down_proj.weight" : tensor<16x32xf32>
  %h4 = call @layer(%h3, %attention_mask, %cos, %sin, %p3_0, %p3_1, %p3_2, %p3_3, %p3_4, %p3_5, %p3_6, %p3_7, %p3_8)
      : (tensor<2x8x16xf32>, tensor<2x8xi64>, tensor<8x2xf32>, tensor<8x2xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<32x16xf32>, tensor<32x16xf32>, tensor<16x32xf32>) -> tensor<2x8x16xf32>
  %nw = nn.parameter "model.norm.weight" init ones : tensor<16xf32>
  %n = nn.rms_norm %h4, %nw epsilon 1.0e-5 : tensor<2x8x16xf32>, tensor<16xf32> -> tensor<2x8x16xf32>
  %head = nn.parameter "lm_head.weight" : tensor<32x16xf32>
  %logits = nn.linear %n, %head role "lm_head" : tensor<2x8x16xf32>, tensor<32x16xf32> -> tensor<2x8x32xf32>
  return %logits : tensor<2x8x32xf32>
}

func.func private @layer(%x: tensor<2x8x16xf32>, %mask: tensor<2x8xi64>, %cos: tensor<8x2xf32>, %sin: tensor<8x2xf32>,
    %n1: tensor<16xf32>, %wq: tensor<16x16xf32>, %wk: tensor<8x16xf32>, %wv: tensor<8x16xf32>, %wo: tensor<16x16xf32>, %n2: tensor<16xf32>,
    %wg: tensor<32x16xf32>, %wu: tensor<32x16xf32>, %wd: tensor<16x32xf32>) -> tensor<2x8x16xf32> {
  %a = nn.rms_norm %x, %n1 epsilon 1.0e-5 : tensor<2x8x16xf32>, tensor<16xf32> -> tensor<2x8x16xf32>
  %q = nn.linear %a, %wq role "attention.query" : tensor<2x8x16xf32>, tensor<16x16xf32> -> tensor<2x8x16xf32>
  %k = nn.linear %a, %wk role "attention.key" : tensor<2x8x16xf32>, tensor<8x16xf32> -> tensor<2x8x8xf32>
  %v = nn.linear %a, %wv role "attention.value" : tensor<2x8x16xf32>, tensor<8x16xf32> -> tensor<2x8x8xf32>
  %qh = nn.split_heads %q : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
  %kh = nn.split_heads %k : tensor<2x8x8xf32> -> tensor<2x8x2x4xf32>
  %vh = nn.split_heads %v : tensor<2x8x8xf32> -> tensor<2x8x2x4xf32>
  %qr = nn.rotary %qh, %cos, %sin : tensor<2x8x4x4xf32>, tensor<8x2xf32>
  %kr = nn.rotary %kh, %cos, %sin : tensor<2x8x2x4xf32>, tensor<8x2xf32>
  %c = nn.attention causal %qr, %kr, %vh mask %mask : tensor<2x8xi64> scale 0.5
      : tensor<2x8x4x4xf32>, tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32> -> tensor<2x8x4x4xf32>
  %m = nn.merge_heads %c : tensor<2x8x4x4xf32> -> tensor<2x8x16xf32>
  %o = nn.linear %m, %wo role "attention.output" : tensor<2x8x16xf32>, tensor<16x16xf32> -> tensor<2x8x16xf32>
  %r = nn.add %o, %x : tensor<2x8x16xf32>, tensor<2x8x16xf32> -> tensor<2x8x16xf32>
  %b = nn.rms_norm %r, %n2 epsilon 1.0e-5 : tensor<2x8x16xf32>, tensor<16xf32> -> tensor<2x8x16xf32>
  %g = nn.linear %b, %wg role "mlp.gate" : tensor<2x8x16xf32>, tensor<32x16xf32> -> tensor<2x8x32xf32>
  %u = nn.linear %b, %wu role "mlp.up" : tensor<2x8x16xf32>, tensor<32x16xf32> -> tensor<2x8x32xf32>
  %s = nn.activation silu %g : tensor<2x8x32xf32>
  %t = nn.mul %s, %u : tensor<2x8x32xf32>, tensor<2x8x32xf32> -> tensor<2x8x32xf32>
  %d = nn.linear %t, %wd role "mlp.down" : tensor<2x8x32xf32>, tensor<16x32xf32> -> tensor<2x8x16xf32>
  %y = nn.add %d, %r : tensor<2x8x16xf32>, tensor<2x8x16xf32> -> tensor<2x8x16xf32>
  return %y : tensor<2x8x16xf32>
}
