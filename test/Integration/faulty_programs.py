# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that are wrong: edits of right ones, each with what the compiler says about it.

A base is a program of examples/programs or of Inputs/faults, at the level at which it is written or, with ":rt", as the
executor's commands that it is compiled to. What is edited is a line, found by a regular expression that matches one line only.
"""

import re


def find(lines, pattern):
    found = [i for i, line in enumerate(lines) if re.search(pattern, line)]
    assert len(found) == 1, f"{len(found)} lines match {pattern}"
    return found[0]


def drop(pattern):
    """Without the line."""

    def edit(lines):
        del lines[find(lines, pattern)]

    return edit


def change(pattern, old, new):
    """With other text in the line."""

    def edit(lines):
        i = find(lines, pattern)
        assert lines[i].count(old) == 1, f"{lines[i].count(old)} times {old} in {lines[i]}"
        lines[i] = lines[i].replace(old, new)

    return edit


def change_nth(pattern, n, old, new):
    """With other text in the n-th of the lines that match."""

    def edit(lines):
        i = [i for i, line in enumerate(lines) if re.search(pattern, line)][n]
        lines[i] = lines[i].replace(old, new)

    return edit


def move(pattern, behind, count=1):
    """With `count` lines from the first moved behind a line."""

    def edit(lines):
        i = find(lines, pattern)
        moved = lines[i : i + count]
        del lines[i : i + count]
        j = find(lines, behind) + 1
        lines[j:j] = moved

    return edit


def add(behind, *new):
    """With more lines behind a line."""

    def edit(lines):
        j = find(lines, behind) + 1
        lines[j:j] = new

    return edit


def swap(a, b):
    """With two lines in each other's place."""

    def edit(lines):
        i, j = find(lines, a), find(lines, b)
        lines[i], lines[j] = lines[j], lines[i]

    return edit


class Fault:
    """A program that is wrong, and its error and notes, without their places."""

    def __init__(self, name, base, edits, *says):
        self.name, self.base, self.edits, self.says = name, base, edits, list(says)

    def spoil(self, text):
        lines = text.split("\n")
        for edit in self.edits:
            edit(lines)
        return "\n".join(lines)


# What a command must wait for, in the commands of programs whose parts overlap.
WAITS = [
    Fault("gather starts before its chunk is computed", "chunks:rt", [drop(r"await %gather\.0 ")],
          "'rt.start' op (all_gather 'gather.0' on the communication queue) reads memory that launch of @silu on the compute queue writes, and no event orders the two"),
    Fault("chunk 0 is multiplied before it is gathered", "chunks:rt", [drop(r"rt.wait %gather\.0_")],
          "'rt.launch' op (launch of @matmul on the compute queue) reads memory that all_gather 'gather.0' on the communication queue writes, and no event orders the two"),
    Fault("chunk 1 is multiplied before it is gathered", "chunks:rt", [drop(r"rt.wait %gather\.1_")],
          "'rt.launch' op (launch of @matmul on the compute queue) reads memory that all_gather 'gather.1' on the communication queue writes, and no event orders the two"),
    Fault("chunk 2 is multiplied before it is gathered", "chunks:rt", [drop(r"rt.wait %gather\.2_")],
          "'rt.launch' op (launch of @matmul on the compute queue) reads memory that all_gather 'gather.2' on the communication queue writes, and no event orders the two"),
    Fault("chunk 3 is multiplied before it is gathered", "chunks:rt", [drop(r"rt.wait %gather\.3_")],
          "'rt.launch' op (launch of @matmul on the compute queue) reads memory that all_gather 'gather.3' on the communication queue writes, and no event orders the two"),
    Fault("a scatter starts before its product", "chunks:rt", [drop(r"await %scatter\.0 ")],
          "'rt.start' op (reduce_scatter 'scatter.0' on the communication queue) reads memory that launch of @matmul on the compute queue writes, and no event orders the two"),
    Fault("the middle scatter starts before its product", "chunks:rt", [drop(r"await %scatter\.1 ")],
          "'rt.start' op (reduce_scatter 'scatter.1' on the communication queue) reads memory that launch of @matmul_0 on the compute queue writes, and no event orders the two"),
    Fault("the last scatter starts before its product", "chunks:rt", [drop(r"await %scatter\.2 ")],
          "'rt.start' op (reduce_scatter 'scatter.2' on the communication queue) reads memory that launch of @matmul_0 on the compute queue writes, and no event orders the two"),
    Fault("the last scatter is not waited for", "chunks:rt", [drop(r"rt.wait %scatter\.2_")],
          "'rt.launch' op (launch of @add on the compute queue) reads memory that reduce_scatter 'scatter.2' on the communication queue writes, and no event orders the two"),
    Fault("a wait behind its reader", "chunks:rt", [move(r"rt.wait %gather\.0_", r"rt.launch @matmul .*\(%4, %up")],
          "'rt.launch' op (launch of @matmul on the compute queue) reads memory that all_gather 'gather.0' on the communication queue writes, and no event orders the two"),
    Fault("an event is recorded too early", "chunks:rt", [move(r"%gather\.0 = rt.record", r"rt.procedure entry")],
          "'rt.start' op (all_gather 'gather.0' on the communication queue) reads memory that launch of @silu on the compute queue writes, and no event orders the two"),
    Fault("a wait for another chunk's gather", "chunks:rt", [change(r"rt.wait %gather\.3_", "%gather.3_3", "%gather.2_2")],
          "'rt.start' op expects each queue to wait for its event once, got two waits on compute [rt.start_c10]"),
    Fault("node-wide sums start before the part inside of the node", "hierarchical:rt", [drop(r"rt.wait %in\.0_")],
          "'rt.start' op (all_reduce 'between.0' on the communication<1> queue) reads memory that reduce_scatter 'in.0' on the communication queue writes, and no event orders the two"),
    Fault("the second of them", "hierarchical:rt", [drop(r"rt.wait %in\.1_")],
          "'rt.start' op (all_reduce 'between.1' on the communication<1> queue) reads memory that reduce_scatter 'in.1' on the communication queue writes, and no event orders the two"),
    Fault("the third of them", "hierarchical:rt", [drop(r"rt.wait %in\.2_")],
          "'rt.start' op (all_reduce 'between.2' on the communication<1> queue) reads memory that reduce_scatter 'in.2' on the communication queue writes, and no event orders the two"),
    Fault("a gather in the node before the sum between nodes", "hierarchical:rt", [drop(r"rt.wait %between\.0_")],
          "'rt.start' op (all_gather 'out.0' on the communication queue) reads memory that all_reduce 'between.0' on the communication<1> queue writes, and no event orders the two"),
    Fault("the second gather before its sum", "hierarchical:rt", [drop(r"rt.wait %between\.1_")],
          "'rt.start' op (all_gather 'out.1' on the communication queue) reads memory that all_reduce 'between.1' on the communication<1> queue writes, and no event orders the two"),
    Fault("the third gather before its sum", "hierarchical:rt", [drop(r"rt.wait %between\.2_")],
          "'rt.start' op (all_gather 'out.2' on the communication queue) reads memory that all_reduce 'between.2' on the communication<1> queue writes, and no event orders the two"),
    Fault("a scatter in the node before its product", "hierarchical:rt", [drop(r"await %in\.0 ")],
          "'rt.start' op (reduce_scatter 'in.0' on the communication queue) reads memory that launch of @matmul on the compute queue writes, and no event orders the two"),
    Fault("the result is read before its last part has come", "hierarchical:rt", [drop(r"rt.wait %out\.2_")],
          "'rt.launch' op (launch of @gelu on the compute queue) reads memory that all_gather 'out.2' on the communication queue writes, and no event orders the two"),
    Fault("the wrong queue waits", "hierarchical:rt", [change(r"rt.wait %in\.0_", " on communication<1>", " on communication")],
          "'rt.wait' op expects the event of an rt.start on another queue [rt.wait_c1]"),
    Fault("bytes are sent before they are made", "between:rt", [drop(r"await %first ")],
          "'rt.start' op (all_gather 'first' on the communication queue) reads memory that launch of @half on the compute queue writes, and no event orders the two"),
    Fault("bytes are read while they arrive", "between:rt", [drop(r"rt.wait %second_")],
          "'rt.launch' op (launch of @half on the compute queue) reads memory that all_gather 'second' on the communication queue writes, and no event orders the two"),
    Fault("work between two collectives on the compute queue", "between:rt", [change(r"rt.launch @half .*\(%1 ", " on communication", "")],
          "'rt.launch' op (launch of @half on the compute queue) reads memory that all_gather 'first' on the communication queue writes, and no event orders the two"),
    Fault("a sum before the last addend", "accumulate:rt", [drop(r"await %gradient ")],
          "'rt.start' op (all_reduce 'gradient' on the communication queue) reads memory that launch of @matmul in @begin on the compute queue writes, and no event orders the two",
          "in the callee, at this command"),
    Fault("an addend that comes when its sum has started", "accumulate:rt", [move(r"rt.call @add\(%6, %4, %5", r"rt.start all_reduce")],
          "'rt.call' op (launch of @matmul_0 in @add on the compute queue) writes memory that all_reduce 'gradient' on the communication queue reads, and no event orders the two",
          "in the callee, at this command"),
    Fault("a sum is read in flight", "accumulate:rt", [drop(r"rt.wait %gradient_")],
          "'rt.launch' op (launch of @tanh on the compute queue) reads memory that all_reduce 'gradient' on the communication queue writes, and no event orders the two"),
    Fault("a gradient's bucket is not waited for", "gradients:rt", [drop(r"rt.wait %bucket\.1_")],
          "'rt.launch' op (launch of @add_0 on the compute queue) reads memory that all_reduce 'bucket.1' on the communication queue writes, and no event orders the two"),
    Fault("the first bucket is not waited for", "gradients:rt", [drop(r"rt.wait %bucket\.0_")],
          "'rt.launch' op (launch of @add on the compute queue) reads memory that all_reduce 'bucket.0' on the communication queue writes, and no event orders the two"),
    Fault("a bucket starts before the gradient is computed", "gradients:rt", [drop(r"await %bucket\.1 ")],
          "'rt.start' op (all_reduce 'bucket.1' on the communication queue) reads memory that launch of @matmul_0 on the compute queue writes, and no event orders the two"),
    Fault("a layer does not wait for the reduction that it gets", "slices:rt", [drop(r"rt.wait %arg8")],
          "'rt.call' op (launch of @add in @layer on the compute queue) reads memory that all_reduce 'down' in @first on the communication queue writes, and no event orders the two",
          "in the callee, at this command",
          "in the callee, at this command"),
    Fault("the last function does not wait", "slices:rt", [drop(r"rt.wait %arg4")],
          "'rt.call' op (launch of @add in @last on the compute queue) reads memory that all_reduce 'down' in @layer on the communication queue writes, and no event orders the two",
          "in the callee, at this command",
          "in the callee, at this command"),
    Fault("a layer waits for the other slice", "slices:rt", [change(r"%15 = rt.call", "%14, %7)", "%14, %4)")],
          "'rt.call' op (launch of @add in @layer on the compute queue) reads memory that all_reduce 'down' in @first on the communication queue writes, and no event orders the two",
          "in the callee, at this command",
          "in the callee, at this command"),
    Fault("a layer hands out the wrong event", "slices:rt", [change_nth(r"rt.return %down_0 ", 1, "%down_0", "%down")],
          "'rt.call' op (launch of @add in @layer on the compute queue) reads memory that all_reduce 'down' in @layer on the communication queue writes, and no event orders the two",
          "in the callee, at this command",
          "in the callee, at this command"),
]

# Where things lie in memory.
MEMORY = [
    Fault("one row of overlap", "chunks:rt", [change(r"rt.subview %11 at \[0, 2, 0\]", "[0, 2, 0]", "[0, 1, 0]")],
          "'rt.launch' op (launch of @gelu on the compute queue) reads memory that nothing has written before",
          "the memory"),
    Fault("one row is left out", "chunks:rt", [change(r"rt.subview %21 at \[0, 2, 0\]", "[0, 2, 0]", "[0, 1, 0]")],
          "'rt.launch' op (launch of @add on the compute queue) reads memory that nothing has written before",
          "the memory"),
    Fault("a part outside of its buffer", "chunks:rt", [change(r"rt.subview %11 at \[0, 6, 0\]", "[0, 6, 0]", "[0, 7, 0]")],
          "'rt.subview' op expects to lie inside of the source in dimension 1, got 2 elements from 7 of 8 [rt.subview_c1]"),
    Fault("a chunk is gathered over one that is read", "chunks:rt", [change(r"%8 = rt.alloc", "at 1024", "at 768")],
          "'rt.alloc' op shares bytes [768, 1024) of symmetric memory with something that is live at the same time",
          "the other one: no event orders launch of @matmul on the compute queue, which uses it, and all_gather 'gather.2' on the communication queue"),
    Fault("a buffer in flight is reused", "gradients:rt", [change(r"%2 = rt.alloc", "at 0", "at 320")],
          "'rt.alloc' op shares bytes [384, 464) of symmetric memory with something that is live at the same time",
          "the other one: no event orders all_reduce 'bucket.0' on the communication queue, which uses it, and launch of @matmul_0 on the compute queue"),
    Fault("the source of a bucket is reused in flight", "gradients:rt", [change(r"%2 = rt.alloc", "at 0", "at 192")],
          "'rt.alloc' op shares bytes [192, 288) of symmetric memory with something that is live at the same time",
          "the other one: no event orders all_reduce 'bucket.0' on the communication queue, which uses it, and launch of @matmul_0 on the compute queue"),
    Fault("a reused symmetric buffer", "slices:rt", [change(r"%5 = rt.alloc", "at 512", "at 0")],
          "'rt.alloc' op shares bytes [0, 256) of symmetric memory with something that is live at the same time",
          "the other one: no event orders launch of @add in @layer on the compute queue, which uses it, and all_reduce 'down' in @first on the communication queue"),
    Fault("a kept operand is reused in flight", "slices:rt", [change(r"%6 = rt.alloc", "at 768", "at 256")],
          "'rt.alloc' op shares bytes [256, 512) of symmetric memory with something that is live at the same time",
          "the other one: no event orders all_reduce 'down' in @first on the communication queue, which uses it, and launch of @matmul in @first on the compute queue"),
    Fault("a callee's frame over an argument", "slices:rt", [change(r"%15 = rt.call", "at <local 512", "at <local 256")],
          "'rt.call' op shares bytes [256, 512) of local memory with something that is live at the same time",
          "the other one: launch of @matmul in @layer on the compute queue runs before launch of @add in @layer on the compute queue, which uses it"),
    Fault("a callee's frame beyond the caller's", "slices:rt", [change(r"%15 = rt.call", "at <local 512", "at <local 1024")],
          "'rt.call' op expects the callee's frame to lie within the caller's"),
    Fault("a buffer beyond the frame", "hierarchical:rt", [change(r"%10 = rt.alloc", "at 832", "at 1024")],
          "'rt.alloc' op expects to end within the frame's 896 bytes of symmetric memory, got 1088 [rt.procedure_c5]"),
    Fault("a buffer between multiples of 64", "hierarchical:rt", [change(r"%10 = rt.alloc", "at 832", "at 840")],
          "'rt.alloc' op expects an offset that is a multiple of 64, got 840 [rt.alloc_c2]"),
    Fault("a collective on local memory", "accumulate:rt", [change(r"%7 = rt.alloc", "<symmetric>", "<local>"), change(r"rt.start all_reduce", "outs(%7 : memref<6x4xf32, #rt.space<symmetric>>", "outs(%7 : memref<6x4xf32, #rt.space<local>>"), change(r"rt.launch @tanh", "<symmetric>", "<local>")],
          "'rt.start' op expects symmetric memory, got 'memref<6x4xf32, #rt.space<local>>' [rt.start_c3]"),
    Fault("two results in one buffer", "slices:rt", [change(r"%4 = rt.call", "%2, %3)", "%2, %2)")],
          "'rt.call' op expects arguments 3 and 4 not to overlap, since the callee writes 4"),
    Fault("a buffer that nothing writes", "gradients:rt", [drop(r"rt.launch @matmul_0")],
          "'rt.start' op (all_reduce 'bucket.1' on the communication queue) reads memory that nothing has written before",
          "the memory"),
    Fault("a result that is written in part", "slices:rt", [change(r"rt.call @last\(%28", "%33", "%32")],
          "'rt.procedure' op expects result argument 9 to be written whole"),
    Fault("a result that nothing writes", "between:rt", [drop(r"outs\(%same_bytes ")],
          "'rt.procedure' op expects result argument 4 to be written"),
    Fault("an argument that is only read is written", "accumulate:rt", [change(r"rt.procedure @add", "memref<6x4xf32> {rt.inout}", "memref<6x4xf32>")],
          "'rt.launch' op expects to write buffers and arguments with rt.result, rt.inout or rt.state only, got argument 0 [rt.procedure_c3]"),
    Fault("a product over its own operand", "slices:rt",
          [change_nth(r"rt.launch @gelu", 0, "@gelu rows 4 ins(%0 : memref<4x16xf32, #rt.space<local>>) outs(%1",
                      "@matmul rows 4 ins(%0, %arg1 : memref<4x16xf32, #rt.space<local>>, memref<16x16xf32>) outs(%0"),
           change_nth(r"rt.launch @matmul.*ins\(%1", 0, "ins(%1", "ins(%0")],
          "'rt.launch' op writes memory that it reads, and cannot run in place"),
    Fault("two values of a bucket in one place", "bucket:rt", [change(r"rt.start all_reduce", "outs(%2, %3", "outs(%2, %2"), change(r"rt.launch @mul", "ins(%2, %3", "ins(%2, %2")],
          "'rt.start' op writes one memory twice"),
]

# Events.
EVENTS = [
    Fault("an event reused", "chunks:rt", [change(r"%gather\.1 = rt.record", "event 2", "event 0")],
          "'rt.record' op uses event 0, which is taken",
          "by this operation"),
    Fault("a collective's event reused", "chunks:rt", [change(r"%gather\.1_1 = rt.start", "event 3", "event 1")],
          "'rt.start' op uses event 1, which is taken",
          "by this operation"),
    Fault("a stale flag: two calls with the same events", "slices:rt", [change(r"%7 = rt.call", "events 2>", "events 0>")],
          "'rt.call' op uses event 0, which is taken",
          "by this operation"),
    Fault("events of a callee beyond the frame's", "slices:rt", [change(r"%31 = rt.call", "events 14>", "events 15>")],
          "'rt.call' op expects the callee's frame to lie within the caller's"),
    Fault("an event beyond the frame", "gradients:rt", [change(r"%bucket\.1_1 = rt.start", "event 3", "event 4")],
          "'rt.start' op expects an event below 4, got 4 [rt.procedure_c5]"),
    Fault("an event awaited on the queue that records it", "gradients:rt", [change(r"await %bucket\.0 ", "on communication", "on compute")],
          "'rt.await' op expects the event of an rt.record on another queue [rt.await_c1]"),
    Fault("a collective on another queue than its await", "gradients:rt", [change(r"%bucket\.0_0 = rt.start", 'role "bucket.0"', 'role "bucket.0" on communication<1>')],
          "'rt.start' op (all_reduce 'bucket.0' on the communication<1> queue) reads memory that launch of @matmul on the compute queue writes, and no event orders the two"),
    Fault("an entry that ends before its collective", "gradients:rt", [drop(r"rt.wait %bucket\.1_"), change(r"rt.launch @add_0", "%3 : memref<6x6xf32>, memref<6x6xf32, #rt.space<symmetric>>", "%v : memref<6x6xf32>, memref<6x6xf32>")],
          "'rt.start' op (all_reduce 'bucket.1' on the communication queue) expects the compute queue to wait for it before the entry ends"),
    Fault("an await of a collective that hides exposed time", "gradients:rt", [change(r"rt.wait %bucket\.0_0", "rt.wait %bucket.0_0", "rt.await %bucket.0_0 on compute")],
          "'rt.await' op expects the event of an rt.record on another queue [rt.await_c1]"),
    Fault("a call without the event that its callee hands out", "slices:rt", [change_nth(r"rt.return %down_0 ", 0, " %down_0 : !rt.event", "")],
          "'rt.return' op expects 1 events, got 0 [rt.return_c1]"),
]

# Handles of collectives in flight.
HANDLES = [
    Fault("a handle is waited for twice", "gradients", [add(r"%s1 = comm.wait", "  %s2 = comm.wait %h1 keeping %f : !comm.handle<tensor<6x6xf32>>, tensor<6x6xf32> -> tensor<6x6xf32>")],
          "'comm.wait' op expects its handle to be waited for exactly once, got 2 uses [comm.wait_c3]"),
    Fault("a handle is never waited for", "gradients", [drop(r"%s1 = comm.wait"), change(r"%z = nn.add", "%s1", "%f")],
          "'comm.start' op expects its handle to be waited for exactly once, got 0 uses [comm.start_c6]"),
    Fault("a wait keeps another operand", "gradients", [change(r"%s0 = comm.wait", "keeping %g ", "keeping %w ")],
          "'comm.wait' op expects to keep the operands of its start [comm.wait_c2]",
          "started here"),
    Fault("a handle leaves the entry", "slices", [change(r"return %n, %p, %r", "%n, %p, %r", "%n, %p, %p")],
          "'nn.add' op expects partial sums over axis 'tp' in operand 0 too, got the same value on all of its ranks",
          "it is added on each of 2 ranks, so that the sum has it 2 times",
          "these are partial sums over axis 'tp', made here",
          "'layer' is called here"),
    Fault("two slices exchange their handles", "slices", [change(r"%ha1, %ka1, %a1 =", "%ha0, %ka0, %a0", "%hb0, %ka0, %a0"), change(r"%hb1, %kb1, %b1 =", "%hb0, %kb0, %b0", "%ha0, %kb0, %b0")],
          "'comm.wait' op expects to keep the operands of its start [comm.wait_c2]",
          "started here"),
    Fault("a handle is passed to two layers", "slices", [change(r"%hb1, %kb1, %b1 =", "%hb0, %kb0, %b0", "%ha0, %ka0, %b0")],
          "'func.call' op expects the handle in result 0 to be taken once, by comm.wait, a call or a return, got 2 uses",
          "taken here",
          "taken here"),
    Fault("a kept operand is overwritten", "slices", [change(r"%ya = func.call", "%ka3", "%kb3")],
          "'comm.wait' op expects to keep the operands of its start [comm.wait_c2]",
          "started here"),
    Fault("a collective that is not started", "gradients", [add(r"%s1 = comm.wait", "  %s2 = comm.all_gather(%s1) dim 0 over <@mesh, {dp}> : tensor<6x6xf32> -> tensor<12x6xf32>")],
          "'comm.all_gather' op is not allowed at level scheduled",
          "the module is taken for one of level scheduled because of this 'comm.start' op"),
]

# Messages between ranks.
MESSAGES = [
    Fault("both receive first", "both", [move(r"comm.send\(%x\).*first", r"%e = comm.recv"), move(r"comm.send\(%x\).*second", r"%e = comm.recv"), move(r"comm.send\(%x\).*third", r"%e = comm.recv"), move(r"comm.send\(%x\).*fourth", r"%e = comm.recv")],
          "cannot make a bundle: member 'program.brpg': entry 'main': deadlock: rank 0 waits for a send of rank 1 at procedure 'main', communication command 1 ('first'); rank 1 waits for a send of rank 0 at procedure 'main', communication command 1 ('first')"),
    Fault("a gradient before its activation", "exchange", [move(r"%d = comm.recv", r"%a = nn.activation")],
          "cannot make a bundle: member 'program.brpg': entry 'main': deadlock: rank 0 waits for a send of rank 1 at procedure 'main', communication command 1 ('backward'); rank 1 waits for a send of rank 0 at procedure 'main', communication command 5 ('forward#1')"),
    Fault("a rank that is not there", "exchange", [change(r"comm.send\(%c\)", "[1 -> 0]", "[2 -> 0]")],
          "'comm.send' op expects every position of 'pairs' to be in [0, 2), got 2 [comm.send_c4]"),
    Fault("a message to itself", "exchange", [change(r"comm.send\(%c\)", "[1 -> 0]", "[1 -> 1]")],
          "'comm.send' op expects no position to send to itself, got 1 -> 1 [comm.send_c6]"),
    Fault("two messages from one rank at once", "exchange", [change(r"comm.send\(%c\)", "[1 -> 0]", "[1 -> 0, 1 -> 1]")],
          "'comm.send' op expects position 1 to be the source of one pair [comm.send_c5]"),
    Fault("more messages in flight than there are slots", "both", [move(r"comm.send\(%a\)", r"comm.send\(%x\).*fourth"), change(r"comm.send\(%a\)", "%a", "%x")],
          "cannot make a bundle: member 'program.brpg': entry 'main': deadlock: rank 0 waits for a recv of rank 1 at procedure 'main', communication command 9 ('fifth'); rank 1 waits for a recv of rank 0 at procedure 'main', communication command 9 ('fifth')"),
    Fault("a send without its recv", "exchange", [change(r"%d = comm.recv", "tag 2", "tag 3")],
          "cannot make a bundle: member 'program.brpg': entry 'main': rank 1 sends at procedure 'main', communication command 5 ('backward'), what rank 0 does not receive (message 0 with tag 2)"),
    Fault("a recv of another pair", "exchange", [change(r"%d = comm.recv", "[1 -> 0]", "[0 -> 1]")],
          "cannot make a bundle: member 'program.brpg': entry 'main': rank 1 receives at procedure 'main', communication command 7 ('backward#1'), what rank 0 does not send (message 0 with tag 2)"),
    Fault("receive order swapped", "messages", [swap(r"%b = comm.recv", r"%c = comm.recv")],
          "cannot make a bundle: member 'program.brpg': entry 'main': rank 1 receives f32 [4, 8] at procedure 'main', communication command 17 ('third#1'), where rank 0 sends f32 [2, 8] at procedure 'main', communication command 3 ('second') (message 1 with tag 1)"),
    Fault("an answer that waits for its question's last part", "messages", [move(r"%e = comm.recv", r"%a = comm.recv")],
          "cannot make a bundle: member 'program.brpg': entry 'main': rank 1 receives f32 [4, 8] at procedure 'main', communication command 11 ('fifth'), where rank 0 sends f32 [2, 8] at procedure 'main', communication command 3 ('second') (message 1 with tag 1)"),
]

# What ranks hold.
PLACEMENTS = [
    Fault("addends used as values", "layer", [drop(r"comm.all_reduce"), change(r"%r = nn.add", "%s", "%p")],
          "'nn.add' op expects partial sums over axis 'tp' in operand 1 too, got the same value on all of its ranks",
          "it is added on each of 2 ranks, so that the sum has it 2 times",
          "these are partial sums over axis 'tp', made here",
          "'layer' is called here"),
    Fault("a non-linear operation on addends", "layer", [drop(r"%s = comm.all_reduce"), change(r"%r = nn.add", "nn.add %s, %b : tensor<4x16xf32>, tensor<16xf32> -> tensor<4x16xf32>", "nn.activation tanh %p : tensor<4x16xf32>")],
          "'nn.activation' op expects operand 0 reduced, got partial sums over axis 'tp'",
          "the operation is not linear in it",
          "these are partial sums over axis 'tp', made here",
          "'layer' is called here"),
    Fault("a bias on each rank of a sum", "layer", [swap(r"%s = comm.all_reduce", r"%r = nn.add"), change(r"%r = nn.add", "%s", "%p"), change(r"%s = comm.all_reduce", "(%p)", "(%r)"), change(r"return %r", "%r", "%s")],
          "'nn.add' op expects partial sums over axis 'tp' in operand 1 too, got the same value on all of its ranks",
          "it is added on each of 2 ranks, so that the sum has it 2 times",
          "these are partial sums over axis 'tp', made here",
          "'layer' is called here"),
    Fault("a second sum", "layer", [add(r"%s = comm.all_reduce", '  %s2 = comm.all_reduce sum(%s) over <@mesh, {tp}> role "again" : tensor<4x16xf32>'), change(r"%r = nn.add", "%s", "%s2")],
          "'comm.all_reduce' op expects partial sums over axis 'tp', got the same value",
          "the sum has it 2 times",
          "this is the same on all ranks of axis 'tp', made here",
          "'layer' is called here"),
    Fault("a reduction over the wrong axis", "layer", [change(r"%s = comm.all_reduce", "{tp}", "{dp}")],
          "'comm.all_reduce' op expects partial sums over axis 'dp', got parts along dimension 0",
          "this is in parts over axis 'dp', as argument 0 of 'main' is declared",
          "'layer' is called here"),
    Fault("a reduction over all axes", "layer", [change(r"%s = comm.all_reduce", "{tp}", "{dp, tp}")],
          "'comm.all_reduce' op expects partial sums over axis 'dp', got parts along dimension 0",
          "this is in parts over axis 'dp', as argument 0 of 'main' is declared",
          "'layer' is called here"),
    Fault("a maximum of addends", "layer", [change(r"%s = comm.all_reduce", "all_reduce sum", "all_reduce max")],
          "'comm.all_reduce' op expects partial maxima over axis 'tp', got partial sums",
          "these are partial sums over axis 'tp', made here",
          "'layer' is called here"),
    Fault("parts joined along another dimension", "layer", [change(r"%all = comm.all_gather", "over <@mesh, {dp}>", "over <@mesh, {tp}>")],
          "'comm.all_gather' op expects parts along dimension 0 over axis 'tp', got the same value",
          "the result has it 2 times"),
    Fault("a result that is declared the same and is not", "layer", [change(r"tensor<4x16xf32> \{nn.name = \"y\"", "[{dp}, {}]", "[{tp}, {}]")],
          "'func.return' op expects the same value over axis 'dp' in result 0 ('y'), as 'main' declares, got parts along dimension 0",
          "this is in parts over axis 'dp', as argument 0 of 'main' is declared"),
    Fault("an input that is declared in other parts", "layer", [change(r"%x: tensor<4x16xf32> \{nn.name", "[{dp}, {}]", "[{tp}, {}]")],
          "'nn.linear' op expects axis 'tp' to cut one of 'batch' and 'out', got both",
          "each rank computes only the block of its own rows and columns",
          "this is in parts over axis 'tp', as argument 0 of 'main' is declared",
          "this is in parts over axis 'tp', made here",
          "'layer' is called here"),
    Fault("a weight cut along the other dimension", "layer", [change(r"%up = nn.parameter", "[{tp}, {}]", "[{}, {tp}]"), change(r"%up = nn.parameter", "tensor<32x16xf32>", "tensor<16x32xf32>")],
          "'nn.linear' op expects 'in' of operands 0 and 1 in the same parts over axis 'tp', got the same value and parts along dimension 1",
          "this is in parts over axis 'tp', made here",
          "'layer' is called here"),
    Fault("a weight of another axis", "layer", [change(r"%down = nn.parameter", "[{}, {tp}]", "[{}, {dp}]")],
          "'nn.linear' op expects 'in' of operands 0 and 1 in the same parts over axis 'dp', got parts along dimension 0 and parts along dimension 1",
          "this is in parts over axis 'dp', as argument 0 of 'main' is declared",
          "this is in parts over axis 'dp', made here",
          "'layer' is called here"),
    Fault("a weight that is not cut", "layer", [change(r"%down = nn.parameter", "of tensor<16x32xf32> sharded <@mesh, [{}, {tp}]> ", "")],
          "'nn.linear' op expects 'in' of operands 0 and 1 in the same parts over axis 'tp', got parts along dimension 1 and the same value",
          "this is in parts over axis 'tp', made here",
          "'layer' is called here"),
    Fault("gradients that are not reduced", "accumulate", [change(r"%y = nn.activation", "tanh %s", "tanh %g2")],
          "'func.return' op expects the same value over axis 'dp' in result 0 ('y'), as 'main' declares, got values of which nothing is known",
          "what the ranks of axis 'dp' hold differs, and nothing more is known of it, made here"),
    Fault("a doubled gradient", "accumulate", [add(r"%s = comm.wait", "  %s2 = nn.add %s, %g2 : tensor<6x4xf32>, tensor<6x4xf32> -> tensor<6x4xf32>"), change(r"%y = nn.activation", "%s", "%s2")],
          "'func.return' op expects the same value over axis 'dp' in result 0 ('y'), as 'main' declares, got values of which nothing is known",
          "what the ranks of axis 'dp' hold differs, and nothing more is known of it, made here"),
    Fault("gradients of the same rows", "gradients", [change(r"%x: tensor<8x4xf32>", "tensor<16x4xf32>, comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>", "tensor<8x4xf32>, comm.sharding = #comm.sharding<@mesh, [{}, {}]>")],
          "'nn.matmul' op expects 'in' of operands 0 and 1 in the same parts over axis 'dp', got parts along dimension 0 and the same value",
          "this is in parts over axis 'dp', as argument 1 of 'main' is declared"),
    Fault("a part of a ring in the wrong place", "ring.py 3", [change(r"comm.assemble", "shifts [0, -1, -2]", "shifts [0, 1, 2]")],
          "'comm.assemble' op expects shift -1 of operand 1, as the part that a rank holds comes from there, got 1"),
    Fault("a ring that turns the other way", "ring.py 3", [change(r"comm.permute.*up\.0", "[0 -> 1, 1 -> 2, 2 -> 0]", "[1 -> 0, 2 -> 1, 0 -> 2]")],
          "'comm.assemble' op expects shift -2 of operand 1, as the part that a rank holds comes from there, got -1"),
    Fault("a ring of odd length by parity", "ring.py 3", [change(r"comm.permute.*up\.0", "[0 -> 1, 1 -> 2, 2 -> 0]", "[0 -> 1, 1 -> 0]")],
          "'comm.assemble' op expects part 2 in operand 1 on the rank at position 0, got part 1"),
    Fault("a ring with a part twice", "ring.py 3", [change(r"comm.assemble", "%upp0, %upp1, %upp2", "%upp0, %upp1, %upp1")],
          "'comm.assemble' op expects shift -1 of operand 2, as the part that a rank holds comes from there, got -2"),
    Fault("a ring with one step less", "ring.py 3", [change(r"%upp2 = nn.linear", "%up2", "%up1")],
          "'comm.assemble' op expects shift -1 of operand 2, as the part that a rank holds comes from there, got -2"),
    Fault("a scatter along a dimension of parts", "chunks", [change(r"gather\.0", "dim 0", "dim 1"), change(r"gather\.0", "-> tensor<2x2x16xf32>", "-> tensor<1x4x16xf32>")],
          "use of value '%v' expects different type than prior uses: 'tensor<2x2x16xf32>' vs 'tensor<1x4x16xf32>'",
          "prior use here"),
    Fault("a sum inside of nodes that should be between them", "hierarchical", [change(r"between\.1", "{node}", "{gpu}")],
          "'comm.all_gather' op expects parts along dimension 0 over axis 'gpu', got the same value",
          "the result has it 2 times",
          "this is the same on all ranks of axis 'gpu', made here"),
    Fault("a chunk that is not summed between nodes", "hierarchical", [change(r"%g1 = comm.start", "%a = %t1", "%a = %r1"), change(r"%u1 = comm.wait", "keeping %t1", "keeping %r1")],
          "'nn.concat' op expects partial sums over axis 'node' in operand 0 too, got the same value on all of its ranks",
          "it is added on each of 2 ranks, so that the sum has it 2 times",
          "these are partial sums over axis 'node', made here",
          "this is the same on all ranks of axis 'node', made here"),
]

# Stages of a pipeline, which run functions of their own.
STAGE = "pipeline.py 2 4"
STAGES = [
    Fault("a gradient awaited before its activation is sent", STAGE, [move(r"%z2\.0, %h2\.0 = func.call", r"%gu1\.0, %gd1\.0 = func.call"), move(r"%z1\.0, %h1\.0 = func.call", r"%gu1\.0, %gd1\.0 = func.call"), change(r"func.call @backward0\(%u0, %d0, %x1", "%z1.0, %h1.0", "%z0.0, %h0.0")],
          "cannot make a bundle: member 'program.brpg': entry 'main': deadlock: rank 0 waits for a send of rank 1 at procedure 'backward0', communication command 1 ('gradient'); rank 1 waits for a send of rank 0 at procedure 'forward1', communication command 1 ('activation')"),
    Fault("an unequal number of calls", STAGE, [drop(r"%gu3\.0, %gd3\.0 = func.call"), change(r"return %y0", "%gu3.0, %gd3.0", "%gu2.0, %gd2.0")],
          "cannot make a bundle: member 'program.brpg': entry 'main': rank 1 sends at procedure 'backward1', communication command 1 ('gradient'), what rank 0 does not receive (message 3 with tag 1)"),
    Fault("a micro-batch that a stage leaves out", STAGE, [drop(r"%z3\.0, %h3\.0 = func.call"), change(r"func.call @backward0\(%u0, %d0, %x3", "%z3.0, %h3.0", "%z2.0, %h2.0")],
          "cannot make a bundle: member 'program.brpg': entry 'main': rank 1 receives at procedure 'forward1', communication command 1 ('activation'), what rank 0 does not send (message 3 with tag 0)"),
    Fault("a stage on a coordinate that is not there", STAGE, [change(r"%z0\.0, %h0\.0 = func.call", "{pp = [0]}", "{pp = [2]}")],
          "'func.call' op axis 'pp' of size 2 has no coordinate 2 [comm.place_c3]"),
    Fault("a stage with the weights of another", STAGE, [change(r"%x0\.1, %z0\.1, %h0\.1, %y0 = func.call", "(%u1, %d1)", "(%u0, %d1)")],
          "'func.call' op on {pp = [1]} reads parameter 'u.0', which only {pp = [0]} have",
          "it is defined here"),
    Fault("a stage that runs everywhere", STAGE, [change(r"%z0\.0, %h0\.0 = func.call", " {comm.on = #comm.place<@mesh, {pp = [0]}>}", "")],
          "'func.call' op on all ranks reads parameter 'u.0', which only {pp = [0]} have",
          "it is defined here"),
    Fault("a result that its rank does not have", STAGE, [change(r"-> \(tensor<8x16xf32> \{nn.name = \"y0\"", '"y0", comm.on = #comm.place<@mesh, {pp = [1]}>', '"y0", comm.on = #comm.place<@mesh, {pp = [0]}>')],
          "'func.return' op expects result 0 of 'main' on {pp = [0]}, got result 3 of the call of 'forward1', which only {pp = [1]} have",
          "it is defined here"),
    Fault("an activation sent to the wrong stage", STAGE, [change(r"comm.send\(%y\)", "[0 -> 1]", "[1 -> 0]")],
          "cannot make a bundle: member 'program.brpg': entry 'main': rank 1 receives at procedure 'forward1', communication command 1 ('activation'), what rank 0 does not send (message 0 with tag 0)"),
    Fault("an activation sent with another tag", STAGE, [change(r"comm.send\(%y\)", "tag 0", "tag 2")],
          "cannot make a bundle: member 'program.brpg': entry 'main': rank 1 receives at procedure 'forward1', communication command 1 ('activation'), what rank 0 does not send (message 0 with tag 0)"),
    Fault("collectives in another order on two ranks", STAGE,
          [change_nth(r"comm.send\(%y\)", 0, "  comm.send(%y)", '  %r0 = comm.all_reduce max(%x) over <@mesh, {pp}> role "first" : tensor<8x16xf32>\n  %r1 = comm.all_reduce max(%y) over <@mesh, {pp}> role "second" : tensor<8x16xf32>\n  comm.send(%y)'),
           change_nth(r"return %x, %z, %h, %y", 0, "  return", '  %r0 = comm.all_reduce max(%y) over <@mesh, {pp}> role "second" : tensor<8x16xf32>\n  %r1 = comm.all_reduce max(%x) over <@mesh, {pp}> role "first" : tensor<8x16xf32>\n  return')],
          "'comm.all_reduce' op expects all ranks along axis 'pp', got {pp = [0]}, which run 'forward0'",
          "'forward0' is called here"),
    Fault("a reduction over the stages inside of one", STAGE, [change_nth(r"%y = nn.linear %h, %d", 1, "%y = nn.linear", "%yy = nn.linear"), add(r"%yy = nn.linear", '  %y = comm.all_reduce sum(%yy) over <@mesh, {pp}> role "down" : tensor<8x16xf32>')],
          "'comm.all_reduce' op expects all ranks along axis 'pp', got {pp = [1]}, which run 'forward1'",
          "'forward1' is called here"),
]

# State that outlives a run.
STATE = "generation.py"
STATES = [
    Fault("a state that is passed twice", STATE + ":rt", [change_nth(r"rt.call @decode_layer", 0, "%keys.0, %values.0", "%keys.0, %keys.0")],
          "'rt.call' op expects arguments 13 and 14 not to overlap, since the callee writes 14"),
    Fault("a state that two layers share", STATE + ":rt", [change_nth(r"rt.call @decode_layer", 1, "%keys.1, %values.1", "%keys.1, %keys.1")],
          "'rt.call' op expects arguments 13 and 14 not to overlap, since the callee writes 14"),
    Fault("an append beside the reader of the whole cache", STATE + ":rt",
          [change_nth(r"rt.launch @append_0 .*%10", 0, "outs(%arg13 : memref<2x28x2x8xf32>)", "outs(%arg13 : memref<2x28x2x8xf32>) on communication")],
          "'rt.launch' op (launch of @append_0 on the communication queue) reads memory that launch of @rotary_2 on the compute queue writes, and no event orders the two"),
    Fault("a state that is not returned", STATE, [change_nth(r"^    tensor<2x28x2x8xf32> .nn.name = .keys.0.", 1, '"keys.0"', '"other"')],
          "'func.func' op expects a result with the new value of state 'keys.0', got none of this name [nn.attributes_c6]"),
]

# Groups, dimensions and shapes.
GROUPS = [
    Fault("an axis that the mesh lacks", "layer", [change(r"%s = comm.all_reduce", "{tp}", "{pp}")],
          "'comm.all_reduce' op unknown axis 'pp' in mesh 'mesh' [comm.all_reduce_c3]"),
    Fault("a group that names an axis twice", "layer", [change(r"%s = comm.all_reduce", "{tp}", "{tp, tp}")],
          "custom op 'comm.all_reduce' expects every axis at most once, got 'tp' twice [comm.group_c1]"),
    Fault("a group mismatch between start and result", "chunks", [change(r"gather\.0", "over <@mesh, {tp}>", "over <@mesh, {}>")],
          "'comm.all_gather' op expects a result of type 'tensor<1x2x16xf32>', got 'tensor<2x2x16xf32>' [comm.all_gather_c5]"),
    Fault("a slice outside", "chunks", [change(r"%x3 = nn.slice", "from 6", "from 7")],
          "'nn.slice' op expects a range inside of dimension 1 of size 8, got 2 from 7 [nn.slice_c2]"),
    Fault("a concat that does not fit", "chunks", [change(r"%h = nn.concat", "%p3 dim 1", "%p3 dim 2")],
          "'nn.concat' op expects a result of type 'tensor<2x2x64xf32>', got 'tensor<2x8x16xf32>' [nn.concat_c4]"),
    Fault("a concat without one chunk", "hierarchical", [change(r"%u = nn.concat", "%u0, %u1, %u2", "%u0, %u2"), change(r"%u = nn.concat", "tensor<2x16xf32>, tensor<2x16xf32>", "tensor<2x16xf32>")],
          "'nn.concat' op expects a result of type 'tensor<6x16xf32>', got 'tensor<8x16xf32>' [nn.concat_c4]"),
    Fault("a dimension that is not there", "layer", [change(r"%all = comm.all_gather", "dim 0", "dim 2")],
          "'comm.all_gather' op expects 'dim' in [0, 2), got 2 [comm.all_gather_c4]"),
    Fault("a queue that is not there", "hierarchical", [change(r"%b0 = comm.start", "on 1", "on 9")],
          "'comm.start' op expects an index of a queue below 8, got 9 [comm.start_c7]"),
]

FAULTS = WAITS + MEMORY + EVENTS + HANDLES + MESSAGES + PLACEMENTS + STAGES + STATES + GROUPS
