// A pipeline of two stages, written by hand as the program of every rank (level comm). Shapes are those of one rank, and
// communication is explicit. All ranks run this code. A rank that no pair names neither sends nor receives; its received
// value is zeros.

comm.mesh @mesh <pp = 2>

func.func private @stage(%x: tensor<32x64xf32>, %w: tensor<64x64xf32>, %b: tensor<64xf32>) -> tensor<32x64xf32> {
  %p0 = nn.linear %x, %w role "stage" : tensor<32x64xf32>, tensor<64x64xf32> -> tensor<32x64xf32>
  %0 = nn.add %p0, %b : tensor<32x64xf32>, tensor<64xf32> -> tensor<32x64xf32>
  %1 = nn.activation gelu %0 : tensor<32x64xf32>
  return %1 : tensor<32x64xf32>
}

// Arguments and results of the entry are replicated.
func.func @main(%first: tensor<32x64xf32> {nn.name = "first"}, %second: tensor<32x64xf32> {nn.name = "second"})
    -> (tensor<32x64xf32> {nn.name = "first_result"}, tensor<32x64xf32> {nn.name = "second_result"})
    attributes {nn.entry} {
  // The parameter's first 64 rows are the weight of stage 0, on rank 0; the others that of stage 1, on rank 1.
  %w = nn.parameter "stages.weight" of tensor<128x64xf32> sharded <@mesh, [{pp}, {}]> : tensor<64x64xf32>
  %b = nn.parameter "stages.bias" of tensor<128xf32> sharded <@mesh, [{pp}]> : tensor<64xf32>

  // Step 0: stage 0 has the first batch. The result of rank 1 is not used: the pipeline fills.
  %0 = call @stage(%first, %w, %b) : (tensor<32x64xf32>, tensor<64x64xf32>, tensor<64xf32>) -> tensor<32x64xf32>
  comm.send(%0) pairs [0 -> 1] over <@mesh, {pp}> role "hand-off" : tensor<32x64xf32>

  // Step 1: stage 1 has the message of stage 0, stage 0 the second batch. On each rank one of the two operands is zero.
  %1 = comm.recv pairs [0 -> 1] over <@mesh, {pp}> role "hand-off" : tensor<32x64xf32>
  %2 = comm.permute(%second) pairs [0 -> 0] over <@mesh, {pp}> role "feed" : tensor<32x64xf32>
  %3 = nn.add %1, %2 : tensor<32x64xf32>, tensor<32x64xf32> -> tensor<32x64xf32>
  %4 = call @stage(%3, %w, %b) : (tensor<32x64xf32>, tensor<64x64xf32>, tensor<64xf32>) -> tensor<32x64xf32>
  comm.send(%4) pairs [0 -> 1] over <@mesh, {pp}> role "hand-off" : tensor<32x64xf32>

  // Step 2: stage 1 has the second batch: the pipeline drains.
  %5 = comm.recv pairs [0 -> 1] over <@mesh, {pp}> role "hand-off" : tensor<32x64xf32>
  %6 = call @stage(%5, %w, %b) : (tensor<32x64xf32>, tensor<64x64xf32>, tensor<64xf32>) -> tensor<32x64xf32>

  // The last stage has the results of both batches and sends them to all ranks.
  %7:2 = comm.broadcast(%4, %6) from 1 over <@mesh, {pp}> role "results" : tensor<32x64xf32>, tensor<32x64xf32>
  return %7#0, %7#1 : tensor<32x64xf32>, tensor<32x64xf32>
}
