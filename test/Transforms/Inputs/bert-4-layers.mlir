func.func @main(%input_ids: tensor<4x8xi64> {nn.name = "input_ids"}, %attention_mask: tensor<4x8xi64> {nn.name = "attention_mask"})
    -> (tensor<4x8x16xf32> {nn.name = "last_hidden_state"}) attributes {nn.entry} {
  %words = nn.parameter "embeddings.word.weight" : tensor<32x16xf32>
  %positions = nn.parameter "embeddings.position.weight" : tensor<8x16xf32>
  %nw = nn.parameter "embeddings.norm.weight" init ones : tensor<16xf32>
  %nb = nn.parameter "embeddings.norm.bias" init zeros : tensor<16xf32>
  %e = nn.embedding %input_ids, %words role "embedding.word" : tensor<4x8xi64>, tensor<32x16xf32> -> tensor<4x8x16xf32>
  %s = nn.add %e, %positions : tensor<4x8x16xf32>, tensor<8x16xf32> -> tensor<4x8x16xf32>
  %h0 = nn.layer_norm %s, %nw, %nb epsilon 1.0e-12 : tensor<4x8x16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<4x8x16xf32>
  %p0_0 = nn.parameter "layer.0.attention.query.weight" : tensor<16x16xf32>
  %p0_1 = nn.parameter "layer.0.attention.query.bias" init zeros : tensor<16xf32>
  %p0_2 = nn.parameter "layer.0.attention.key.weight" : tensor<16x16xf32>
  %p0_3 = nn.parameter "layer.0.attention.key.bias" init zeros : tensor<16xf32>
  %p0_4 = nn.parameter "layer.0.attention.value.weight" : tensor<16x16xf32>
  %p0_5 = nn.parameter "layer.0.attention.value.bias" init zeros : tensor<16xf32>
  %p0_6 = nn.parameter "layer.0.attention.output.weight" : tensor<16x16xf32>
  %p0_7 = nn.parameter "layer.0.attention.output.bias" init zeros : tensor<16xf32>
  %p0_8 = nn.parameter "layer.0.attention.norm.weight" init ones : tensor<16xf32>
  %p0_9 = nn.parameter "layer.0.attention.norm.bias" init zeros : tensor<16xf32>
  %p0_10 = nn.parameter "layer.0.mlp.up.weight" : tensor<64x16xf32>
  %p0_11 = nn.parameter "layer.0.mlp.up.bias" init zeros : tensor<64xf32>
  %p0_12 = nn.parameter "layer.0.mlp.down.weight" : tensor<16x64xf32>
  %p0_13 = nn.parameter "layer.0.mlp.down.bias" init zeros : tensor<16xf32>
  %p0_14 = nn.parameter "layer.0.norm.weight" init ones : tensor<16xf32>
  %p0_15 = nn.parameter "layer.0.norm.bias" init zeros : tensor<16xf32>
  %h1 = call @layer(%h0, %attention_mask, %p0_0, %p0_1, %p0_2, %p0_3, %p0_4, %p0_5, %p0_6, %p0_7, %p0_8, %p0_9, %p0_10, %p0_11, %p0_12, %p0_13, %p0_14, %p0_15)
      : (tensor<4x8x16xf32>, tensor<4x8xi64>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<64x16xf32>, tensor<64xf32>, tensor<16x64xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<4x8x16xf32>
  %p1_0 = nn.parameter "layer.1.attention.query.weight" : tensor<16x16xf32>
  %p1_1 = nn.parameter "layer.1.attention.query.bias" init zeros : tensor<16xf32>
  %p1_2 = nn.parameter "layer.1.attention.key.weight" : tensor<16x16xf32>
  %p1_3 = nn.parameter "layer.1.attention.key.bias" init zeros : tensor<16xf32>
  %p1_4 = nn.parameter "layer.1.attention.value.weight" : tensor<16x16xf32>
  %p1_5 = nn.parameter "layer.1.attention.value.bias" init zeros : tensor<16xf32>
  %p1_6 = nn.parameter "layer.1.attention.output.weight" : tensor<16x16xf32>
  %p1_7 = nn.parameter "layer.1.attention.output.bias" init zeros : tensor<16xf32>
  %p1_8 = nn.parameter "layer.1.attention.norm.weight" init ones : tensor<16xf32>
  %p1_9 = nn.parameter "layer.1.attention.norm.bias" init zeros : tensor<16xf32>
  %p1_10 = nn.parameter "layer.1.mlp.up.weight" : tensor<64x16xf32>
  %p1_11 = nn.parameter "layer.1.mlp.up.bias" init zeros : tensor<64xf32>
  %p1_12 = nn.parameter "layer.1.mlp.down.weight" : tensor<16x64xf32>
  %p1_13 = nn.parameter "layer.1.mlp.down.bias" init zeros : tensor<16xf32>
  %p1_14 = nn.parameter "layer.1.norm.weight" init ones : tensor<16xf32>
  %p1_15 = nn.parameter "layer.1.norm.bias" init zeros : tensor<16xf32>
  %h2 = call @layer(%h1, %attention_mask, %p1_0, %p1_1, %p1_2, %p1_3, %p1_4, %p1_5, %p1_6, %p1_7, %p1_8, %p1_9, %p1_10, %p1_11, %p1_12, %p1_13, %p1_14, %p1_15)
      : (tensor<4x8x16xf32>, tensor<4x8xi64>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<64x16xf32>, tensor<64xf32>, tensor<16x64xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<4x8x16xf32>
  %p2_0 = nn.parameter "layer.2.attention.query.weight" : tensor<16x16xf32>
  %p2_1 = nn.parameter "layer.2.attention.query.bias" init zeros : tensor<16xf32>
  %p2_2 = nn.parameter "layer.2.attention.key.weight" : tensor<16x16xf32>
  %p2_3 = nn.parameter "layer.2.attention.key.bias" init zeros : tensor<16xf32>
  %p2_4 = nn.parameter "layer.2.attention.value.weight" : tensor<16x16xf32>
  %p2_5 = nn.parameter "layer.2.attention.value.bias" init zeros : tensor<16xf32>
  %p2_6 = nn.parameter "layer.2.attention.output.weight" : tensor<16x16xf32>
  %p2_7 = nn.parameter "layer.2.attention.output.bias" init zeros : tensor<16xf32>
  %p2_8 = nn.parameter "layer.2.attention.norm.weight" init ones : tensor<16xf32>
  %p2_9 = nn.parameter "layer.2.attention.norm.bias" init zeros : tensor<16xf32>
  %p2_10 = nn.parameter "layer.2.mlp.up.weight" : tensor<64x16xf32>
  %p2_11 = nn.parameter "layer.2.mlp.up.bias" init zeros : tensor<64xf32>
  %p2_12 = nn.parameter "layer.2.mlp.down.weight" : tensor<16x64xf32>
  %p2_13 = nn.parameter "layer.2.mlp.down.bias" init zeros : tensor<16xf32>
  %p2_14 = nn.parameter "layer.2.norm.weight" init ones : tensor<16xf32>
  %p2_15 = nn.parameter "layer.2.norm.bias" init zeros : tensor<16xf32>
  %h3 = call @layer(%h2, %attention_mask, %p2_0, %p2_1, %p2_2, %p2_3, %p2_4, %p2_5, %p2_6, %p2_7, %p2_8, %p2_9, %p2_10, %p2_11, %p2_12, %p2_13, %p2_14, %p2_15)
      : (tensor<4x8x16xf32>, tensor<4x8xi64>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<64x16xf32>, tensor<64xf32>, tensor<16x64xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<4x8x16xf32>
  %p3_0 = nn.parameter "layer.3.attention.query.weight" : tensor<16x16xf32>
  %p3_1 = nn.parameter "layer.3.attention.query.bias" init zeros : tensor<16xf32>
  %p3_2 = nn.parameter "layer.3.attention.key.weight" : tensor<16x16xf32>
  %p3_3 = nn.parameter "layer.3.attention.key.bias" init zeros : tensor<16xf32>
  %p3_4 = nn.parameter "layer.3.attention.value.weight" : tensor<16x16xf32>
  %p3_5 = nn.parameter "layer.3.attention.value.bias" init zeros : tensor<16xf32>
  %p3_6 = nn.parameter "layer.3.attention.output.weight" : tensor<16x16xf32>
  %p3_7 = nn.parameter "layer.3.attention.output.bias" init zeros : tensor<16xf32>
  %p3_8 = nn.parameter "layer.3.attention.norm.weight" init ones : tensor<16xf32>
  %p3_9 = nn.parameter "layer.3.attention.norm.bias" init zeros : tensor<16xf32>
  %p3_10 = nn.parameter "layer.3.mlp.up.weight" : tensor<64x16xf32>
  %p3_11 = nn.parameter "layer.3.mlp.up.bias" init zeros : tensor<64xf32>
  %p3_12 = nn.parameter "layer.3.mlp.down.weight" : tensor<16x64xf32>
  %p3_13 = nn.parameter "layer.3.mlp.down.bias" init zeros : tensor<16xf32>
  %p3_14 = nn.parameter "layer.3.norm.weight" init ones : tensor<16xf32>
  %p3_15 = nn.parameter "layer.3.norm.bias" init zeros : tensor<16xf32>
  %h4 = call @layer(%h3, %attention_mask, %p3_0, %p3_1, %p3_2, %p3_3, %p3_4, %p3_5, %p3_6, %p3_7, %p3_8, %p3_9, %p3_10, %p3_11, %p3_12, %p3_13, %p3_14, %p3_15)
      : (tensor<4x8x16xf32>, tensor<4x8xi64>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<64x16xf32>, tensor<64xf32>, tensor<16x64xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<4x8x16xf32>
  return %h4 : tensor<4x8x16xf32>
}

func.func private @layer(%x: tensor<4x8x16xf32>, %mask: tensor<4x8xi64>,
    %wq: tensor<16x16xf32>, %bq: tensor<16xf32>, %wk: tensor<16x16xf32>, %bk: tensor<16xf32>,
    %wv: tensor<16x16xf32>, %bv: tensor<16xf32>, %wo: tensor<16x16xf32>, %bo: tensor<16xf32>,
    %n1w: tensor<16xf32>, %n1b: tensor<16xf32>,
    %wu: tensor<64x16xf32>, %bu: tensor<64xf32>, %wd: tensor<16x64xf32>, %bd: tensor<16xf32>,
    %n2w: tensor<16xf32>, %n2b: tensor<16xf32>) -> tensor<4x8x16xf32> {
  %qp = nn.linear %x, %wq role "attention.query" : tensor<4x8x16xf32>, tensor<16x16xf32> -> tensor<4x8x16xf32>
  %q = nn.add %qp, %bq : tensor<4x8x16xf32>, tensor<16xf32> -> tensor<4x8x16xf32>
  %kp = nn.linear %x, %wk role "attention.key" : tensor<4x8x16xf32>, tensor<16x16xf32> -> tensor<4x8x16xf32>
  %k = nn.add %kp, %bk : tensor<4x8x16xf32>, tensor<16xf32> -> tensor<4x8x16xf32>
  %vp = nn.linear %x, %wv role "attention.value" : tensor<4x8x16xf32>, tensor<16x16xf32> -> tensor<4x8x16xf32>
  %v = nn.add %vp, %bv : tensor<4x8x16xf32>, tensor<16xf32> -> tensor<4x8x16xf32>
  %qh = nn.split_heads %q : tensor<4x8x16xf32> -> tensor<4x8x4x4xf32>
  %kh = nn.split_heads %k : tensor<4x8x16xf32> -> tensor<4x8x4x4xf32>
  %vh = nn.split_heads %v : tensor<4x8x16xf32> -> tensor<4x8x4x4xf32>
  %ah = nn.attention %qh, %kh, %vh mask %mask : tensor<4x8xi64> scale 0.5
      : tensor<4x8x4x4xf32>, tensor<4x8x4x4xf32>, tensor<4x8x4x4xf32> -> tensor<4x8x4x4xf32>
  %a = nn.merge_heads %ah : tensor<4x8x4x4xf32> -> tensor<4x8x16xf32>
  %op = nn.linear %a, %wo role "attention.output" : tensor<4x8x16xf32>, tensor<16x16xf32> -> tensor<4x8x16xf32>
  %o = nn.add %op, %bo : tensor<4x8x16xf32>, tensor<16xf32> -> tensor<4x8x16xf32>
  %r1 = nn.add %o, %x : tensor<4x8x16xf32>, tensor<4x8x16xf32> -> tensor<4x8x16xf32>
  %h = nn.layer_norm %r1, %n1w, %n1b epsilon 1.0e-12 : tensor<4x8x16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<4x8x16xf32>
  %hu = nn.linear %h, %wu role "mlp.up" : tensor<4x8x16xf32>, tensor<64x16xf32> -> tensor<4x8x64xf32>
  %u = nn.add %hu, %bu : tensor<4x8x64xf32>, tensor<64xf32> -> tensor<4x8x64xf32>
  %g = nn.activation gelu %u : tensor<4x8x64xf32>
  %dp = nn.linear %g, %wd role "mlp.down" : tensor<4x8x64xf32>, tensor<16x64xf32> -> tensor<4x8x16xf32>
  %d = nn.add %dp, %bd : tensor<4x8x16xf32>, tensor<16xf32> -> tensor<4x8x16xf32>
  %r2 = nn.add %d, %h : tensor<4x8x16xf32>, tensor<4x8x16xf32> -> tensor<4x8x16xf32>
  %y = nn.layer_norm %r2, %n2w, %n2b epsilon 1.0e-12 : tensor<4x8x16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<4x8x16xf32>
  return %y : tensor<4x8x16xf32>
}
