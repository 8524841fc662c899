// RUN: braid-opt %s --split-input-file --test-interpret --verify-diagnostics

// expected-error-re@+1 {{rank {{[01]}}: {{.*}}: 'comm.all_to_all_v': all_to_all_v over {ep} ('moe') expects counts in [0, 2], got 3 at block 1}}
module {
  comm.mesh @mesh <ep = 2>
  func.func @main(%x: tensor<2x2xf32> {test.input = dense<0.0> : tensor<2x2xf32>}, %c: tensor<2xi64> {test.input = dense<[1, 3]> : tensor<2xi64>}) {
    %r, %n = comm.all_to_all_v(%x) counts %c : tensor<2xi64> over <@mesh, {ep}> role "moe" : tensor<2x2xf32>
    return
  }
}

// -----

// expected-error@+1 {{rank 0 sends in send pairs [0 -> 1] over {pp} tag 4 ('activation') what rank 1 never receives}}
module {
  comm.mesh @mesh <pp = 2>
  func.func @main(%x: tensor<2xf32> {test.input = dense<0.0> : tensor<2xf32>}) {
    comm.send(%x) pairs [0 -> 1] over <@mesh, {pp}> tag 4 role "activation" : tensor<2xf32>
    return
  }
}

// -----

// expected-error-re@+1 {{ranks wait for each other: rank 0 has ended; rank 1 waits in recv pairs [0 -> 1] over {pp} ('{{.*}}') for rank 0}}
module {
  comm.mesh @mesh <pp = 2>
  func.func @main() {
    %0 = comm.recv pairs [0 -> 1] over <@mesh, {pp}> : tensor<2xf32>
    return
  }
}

// -----

// expected-error-re@+1 {{ranks disagree about value number 0 from rank 0 to rank 1: rank 0 sends with send pairs [0 -> 1] over {pp} of (f32[2]) at '{{.*}}', rank 1 expects with recv pairs [0 -> 1] over {pp} of (i64[2]) at '{{.*}}'}}
module {
  comm.mesh @mesh <pp = 2>
  func.func @main(%x: tensor<2xf32> {test.input = dense<0.0> : tensor<2xf32>}) {
    comm.send(%x) pairs [0 -> 1] over <@mesh, {pp}> : tensor<2xf32>
    %0 = comm.recv pairs [0 -> 1] over <@mesh, {pp}> : tensor<2xi64>
    return
  }
}
