// A program whose ranks receive before they send would deadlock, so every target refuses to compile it.

// RUN: not braid compile %s -o %t.braid 2>&1 | FileCheck %s
// RUN: not braid run %s 2>&1 | FileCheck %s

// CHECK: error: cannot make a bundle: member 'program.brpg': entry 'main': deadlock: rank 0 waits for a send of rank 1 at
// CHECK-SAME: procedure 'main', communication command 1 ('recv'); rank 1 waits for a send of rank 0 at
// CHECK-SAME: procedure 'main', communication command 1 ('recv')

comm.mesh @mesh <pp = 2>

func.func @main(%x: tensor<8x4xf32> {nn.name = "x"})
    -> (tensor<8x4xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{pp}, {}]>, comm.global_type = tensor<16x4xf32>}) attributes {nn.entry} {
  %r = comm.recv pairs [0 -> 1, 1 -> 0] over <@mesh, {pp}> : tensor<8x4xf32>
  comm.send(%x) pairs [0 -> 1, 1 -> 0] over <@mesh, {pp}> : tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
