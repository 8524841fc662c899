// Collectives are encoded where a machine is predicted to be faster by it. The machine of this test has links of 1 Gbit/s, codecs
// of int8:128 alone, and no other cost.
// DEFINE: %{encodings} = "*=int8:128"
// DEFINE: %{machine} = %S/Inputs/slow-links.json
// DEFINE: %{where} = hosts=1,1,1,1
// DEFINE: %{quantize} = braid-opt %s --braid-quantize-collectives="encodings=%{encodings} machine=%{machine} %{where}"
// DEFINE: %{remarks} = %{quantize} --remark-format=emitRemark --remarks-filter=communication -o /dev/null
// A rank on each host: only the one with many rows.
// RUN: %{quantize} | FileCheck %s
// RUN: %{remarks} 2>&1 | FileCheck %s --check-prefix=HOSTS
// HOSTS-DAG: comm.all_reduce 'mlp.down': encoded as int8:128, as '*' says: 6.34 ms as it is, 1.96 ms encoded as int8:128
// HOSTS-DAG: comm.all_reduce 'norm': not encoded: 57.2 us as it is, 0.107 ms encoded as int8:128
// All on one host, which moves a MiB in 100 us.
// REDEFINE: %{where} =
// RUN: %{quantize} | FileCheck %s --check-prefix=SHM
// RUN: %{remarks} 2>&1 | FileCheck %s --check-prefix=HOST
// HOST-DAG: comm.all_reduce 'mlp.down': not encoded:
// HOST-DAG: comm.all_reduce 'norm': not encoded:
// With '!' whatever the times are; one that is taken back is not compared.
// REDEFINE: %{encodings} = "*=int8:128!,norm=none"
// REDEFINE: %{where} = transport=shm
// RUN: %{quantize} | FileCheck %s
// RUN: %{remarks} 2>&1 | FileCheck %s --check-prefix=FORCED
// FORCED-DAG: comm.all_reduce 'mlp.down': encoded as int8:128, as '*' says:
// FORCED-DAG: comm.all_reduce 'norm': not encoded, as 'norm' says
// The last pattern counts, also where it is slower.
// REDEFINE: %{encodings} = "*=int8:128!,mlp.*=int8:128"
// RUN: %{quantize} | FileCheck %s --check-prefix=LAST
// What the file does not tell.
// REDEFINE: %{encodings} = "*=int4:128"
// REDEFINE: %{where} = hosts=1,1,1,1
// RUN: not %{quantize} 2>&1 | FileCheck %s --check-prefix=CODES
// CODES: error: 'comm.all_reduce' op 'mlp.down': no time of it as int4:128 is known: the machine file does not tell what 'int4:128' takes: it has no rates of such codes ('!' behind the encoding takes it without one)
// REDEFINE: %{encodings} = "*=int4:128!"
// RUN: %{quantize} | FileCheck %s --check-prefix=INT4
// REDEFINE: %{encodings} = "*=int8:128"
// RUN: sed '/"codecs"/,/^   \]/d; s/"memory": \[\],/"memory": []/' %{machine} > %t.json
// REDEFINE: %{machine} = %t.json
// RUN: not %{quantize} 2>&1 | FileCheck %s --check-prefix=NOCODECS
// NOCODECS: error: 'comm.all_reduce' op 'mlp.down': no time of it as int8:128 is known: the machine file has no rates of codecs ('!' behind the encoding takes it without one)
// REDEFINE: %{machine} = %S/Inputs/slow-links.json
// REDEFINE: %{where} = transport=threads
// RUN: not %{quantize} 2>&1 | FileCheck %s --check-prefix=TRANSPORT
// TRANSPORT: error: 'comm.all_reduce' op 'mlp.down': no time of it as int8:128 is known: the machine file has no transport 'threads' of 4 ranks
// REDEFINE: %{where} = hosts=2,2
// RUN: not %{quantize} 2>&1 | FileCheck %s --check-prefix=PAIRS
// PAIRS: error: 'comm.all_reduce' op 'mlp.down': no time of it as int8:128 is known: the machine file has no transport 'shm' of 2 ranks
// REDEFINE: %{where} = hosts=2,1
// RUN: not %{quantize} 2>&1 | FileCheck %s --check-prefix=RANKS
// RANKS: error: 'comm.all_reduce' op 'mlp.down': no time of it as int8:128 is known: expects hosts of 4 ranks in all, which the mesh has, got 3
// REDEFINE: %{where} = hosts=2,2 transport=shm
// RUN: not %{quantize} 2>&1 | FileCheck %s --check-prefix=SEVERAL
// SEVERAL: error: expects transport ucx over 2 hosts, got 'shm'
// REDEFINE: %{where} = transport=pigeons
// RUN: not %{quantize} 2>&1 | FileCheck %s --check-prefix=PIGEONS
// PIGEONS: error: expects a transport threads, shm or ucx, got 'pigeons'
// REDEFINE: %{where} = hosts=4,0
// RUN: not %{quantize} 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: error: expects at least 1 thread, and 1 rank on each host
// REDEFINE: %{where} =
// REDEFINE: %{machine} = z9
// RUN: not %{quantize} 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: no machine 'z9': expects {{.*}}h100{{.*}} or the path of a machine file
// RUN: not braid-opt %s --braid-quantize-collectives="encodings=*=int8:128 hosts=2,2" 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: error: a transport or hosts to quantize for expect a machine

comm.mesh @mesh <dp = 1, tp = 4>

// CHECK-LABEL: func.func @main
// SHM-LABEL: func.func @main
// LAST-LABEL: func.func @main
// INT4-LABEL: func.func @main
func.func @main(%x: tensor<128x1024xf32>, %n: tensor<1x64xf32>) -> (tensor<128x1024xf32>, tensor<1x64xf32>) {
  // CHECK: role "mlp.down" {comm.encoding = #comm.encoding<"int8:128">}
  // SHM: role "mlp.down" : tensor
  // LAST: role "mlp.down" : tensor
  // INT4: role "mlp.down" {comm.encoding = #comm.encoding<"int4:128">}
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> role "mlp.down" : tensor<128x1024xf32>
  // CHECK: role "norm" : tensor
  // SHM: role "norm" : tensor
  // LAST: role "norm" {comm.encoding = #comm.encoding<"int8:128">}
  // INT4: role "norm" {comm.encoding = #comm.encoding<"int4:128">}
  %1 = comm.all_reduce sum(%n) over <@mesh, {tp}> role "norm" : tensor<1x64xf32>
  return %0, %1 : tensor<128x1024xf32>, tensor<1x64xf32>
}
