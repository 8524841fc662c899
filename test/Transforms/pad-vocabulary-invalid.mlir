// RUN: braid-opt %s --braid-pad-for-strategy="strategy=vocab" --split-input-file --verify-diagnostics -o /dev/null

comm.mesh @mesh <tp = 4>
func.func @softmax(%x: tensor<2x8x16xf32>) -> tensor<2x8x6xf32> {
  %w = nn.parameter "w" : tensor<6x16xf32>
  // expected-error @+1 {{'nn.linear' op a vocabulary of 6 cannot be padded for axis 'tp' of size 4: logits go into an operation that would see the padding}}
  %0 = nn.linear %x, %w role "lm_head" : tensor<2x8x16xf32>, tensor<6x16xf32> -> tensor<2x8x6xf32>
  // expected-note @+1 {{see 'nn.softmax'}}
  %1 = nn.softmax %0 : tensor<2x8x6xf32>
  return %1 : tensor<2x8x6xf32>
}

// -----

comm.mesh @mesh <tp = 4>
func.func @product(%x: tensor<2x8x16xf32>, %v: tensor<16x6xf32>) -> tensor<2x8x16xf32> {
  %w = nn.parameter "w" : tensor<6x16xf32>
  // expected-error @+1 {{'nn.linear' op a vocabulary of 6 cannot be padded for axis 'tp' of size 4: logits go into an operation that would see the padding}}
  %0 = nn.linear %x, %w role "lm_head" : tensor<2x8x16xf32>, tensor<6x16xf32> -> tensor<2x8x6xf32>
  // expected-note @+1 {{see 'nn.linear'}}
  %1 = nn.linear %0, %v : tensor<2x8x6xf32>, tensor<16x6xf32> -> tensor<2x8x16xf32>
  return %1 : tensor<2x8x16xf32>
}

// -----

comm.mesh @mesh <tp = 4>
func.func @no_rule(%x: tensor<2x8x16xf32>) -> tensor<2x8x6xf32> {
  %w = nn.parameter "w" : tensor<6x16xf32>
  // expected-error @+1 {{'nn.linear' op a vocabulary of 6 cannot be padded for axis 'tp' of size 4: logits go into an operation without a sharding rule}}
  %0 = nn.linear %x, %w role "lm_head" : tensor<2x8x16xf32>, tensor<6x16xf32> -> tensor<2x8x6xf32>
  // expected-note @+1 {{see 'arith.negf'}}
  %1 = arith.negf %0 : tensor<2x8x6xf32>
  return %1 : tensor<2x8x6xf32>
}

// -----

comm.mesh @mesh <tp = 4>
func.func @meets(%x: tensor<2x8x16xf32> {nn.name = "x"}, %y: tensor<6xf32> {nn.name = "y"}) -> (tensor<2x8x6xf32> {nn.name = "z"}) attributes {nn.entry} {
  %w = nn.parameter "w" : tensor<6x16xf32>
  // expected-error @+1 {{'nn.linear' op a vocabulary of 6 cannot be padded for axis 'tp' of size 4: logits meet a value that cannot be padded}}
  %0 = nn.linear %x, %w role "lm_head" : tensor<2x8x16xf32>, tensor<6x16xf32> -> tensor<2x8x6xf32>
  // expected-note @+1 {{see 'nn.mul'}}
  %1 = nn.mul %0, %y : tensor<2x8x6xf32>, tensor<6xf32> -> tensor<2x8x6xf32>
  return %1 : tensor<2x8x6xf32>
}

// -----

comm.mesh @mesh <tp = 4>
func.func @operand(%ids: tensor<2x8xi64>, %w: tensor<6x16xf32>) -> tensor<2x8x16xf32> {
  // expected-error @+1 {{'nn.embedding' op a vocabulary of 6 cannot be padded for axis 'tp' of size 4: expects its weights to be parameters}}
  %0 = nn.embedding %ids, %w role "embedding.word" : tensor<2x8xi64>, tensor<6x16xf32> -> tensor<2x8x16xf32>
  return %0 : tensor<2x8x16xf32>
}

// -----

comm.mesh @mesh <tp = 4>
func.func @shared(%ids: tensor<2x8xi64>) -> (tensor<2x8x16xf32>, tensor<6x16xf32>) {
  %w = nn.parameter "w" : tensor<6x16xf32>
  // expected-error @+1 {{'nn.embedding' op a vocabulary of 6 cannot be padded for axis 'tp' of size 4: it takes parameter 'w' too}}
  %0 = nn.embedding %ids, %w role "embedding.word" : tensor<2x8xi64>, tensor<6x16xf32> -> tensor<2x8x16xf32>
  // expected-note @+1 {{see 'func.return'}}
  return %0, %w : tensor<2x8x16xf32>, tensor<6x16xf32>
}

// -----

comm.mesh @mesh <tp = 4>
func.func @inner(%x: tensor<2x8x16xf32>) -> tensor<2x8x6xf32> {
  %w = nn.parameter "w" : tensor<6x16xf32>
  // expected-error @+1 {{'nn.linear' op a vocabulary of 6 cannot be padded for axis 'tp' of size 4: expects logits to be a result of the entry}}
  %0 = nn.linear %x, %w role "lm_head" : tensor<2x8x16xf32>, tensor<6x16xf32> -> tensor<2x8x6xf32>
  // expected-note @+1 {{see 'func.return'}}
  return %0 : tensor<2x8x6xf32>
}
func.func @main(%x: tensor<2x8x16xf32> {nn.name = "x"}) -> (tensor<2x8x6xf32> {nn.name = "y"}) attributes {nn.entry} {
  %0 = call @inner(%x) : (tensor<2x8x16xf32>) -> tensor<2x8x6xf32>
  return %0 : tensor<2x8x6xf32>
}

// -----

comm.mesh @mesh <tp = 1000000>
func.func @too_large(%ids: tensor<2x8xi64>) -> tensor<2x8x1073741824xf32> {
  %w = nn.parameter "w" : tensor<6x1073741824xf32>
  // expected-error @+1 {{'nn.embedding' op a vocabulary of 6 cannot be padded for axis 'tp' of size 1000000: its weights would have more than 2^48 elements}}
  %0 = nn.embedding %ids, %w role "embedding.word" : tensor<2x8xi64>, tensor<6x1073741824xf32> -> tensor<2x8x1073741824xf32>
  return %0 : tensor<2x8x1073741824xf32>
}
