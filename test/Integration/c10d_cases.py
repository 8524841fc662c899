# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each rank of test_c10d.py does; c10d_ranks.py starts them. Values are small integers, whose sums every type holds
exactly; every element is compared with what NumPy computes from the values of all ranks."""
import datetime
import os
import signal
import time

import numpy as np

try:
    import torch
    import torch.distributed as dist
except ImportError:
    torch = dist = None

TYPES = ["float32", "bfloat16", "float16", "float64", "int32", "int64", "int8", "uint8"]
COPIED = TYPES + ["bool", "int16", "complex64"]
SIZES = [0, 1, 7, 1000, 70001]


def values(rank, count, seed=0, high=10):
    """Another value for each rank, element and seed."""
    index = np.arange(count, dtype=np.int64)
    return (index * 7 + index // 13 + rank * 5 + seed * 3) % high


def tensor(array, kind, shape=None):
    # bool takes any number but 0 for true.
    result = torch.from_numpy(np.ascontiguousarray(array % 2 if kind == "bool" else array)).to(getattr(torch, kind), copy=True)
    return result if shape is None else result.reshape(shape)


def numbers(result):
    return (result.real if result.is_complex() else result).to(torch.int64).numpy()


def expect(result, expected, what):
    got = numbers(result).reshape(-1)
    expected = np.asarray(expected).reshape(-1)
    assert got.shape == expected.shape, f"{what}: {got.shape} instead of {expected.shape}"
    wrong = np.nonzero(got != expected)[0]
    assert wrong.size == 0, (f"{what}: {wrong.size} of {got.size} elements are wrong, the first at {wrong[0]}: "
                             f"{got[wrong[0]]} instead of {expected[wrong[0]]}")


def reduced(op, arrays):
    arrays = np.stack(arrays)
    return {"SUM": arrays.sum(0), "MAX": arrays.max(0), "MIN": arrays.min(0), "PRODUCT": arrays.prod(0),
            "BAND": np.bitwise_and.reduce(arrays), "BOR": np.bitwise_or.reduce(arrays),
            "BXOR": np.bitwise_xor.reduce(arrays)}[op]


def ops_of(kind):
    ops = ["SUM", "MAX", "MIN", "PRODUCT"]
    return ops + (["AVG"] if "float" in kind else ["BAND", "BOR", "BXOR"])


def operands(op, ranks, count, seed=0):
    """The values of all ranks, and the result."""
    high = {"PRODUCT": 3, "SUM": 10}.get(op, 30)
    arrays = [values(rank, count, seed, high) for rank in range(ranks)]
    if op == "AVG":
        return [array * ranks for array in arrays], reduced("SUM", arrays)
    return arrays, reduced(op, arrays)


# ---- Cases: functions of the rank, the number of ranks, and their arguments. What they return goes to the test.

def reductions(rank, ranks):
    count = 0
    for kind in TYPES:
        for op in ops_of(kind):
            reduce_op = getattr(dist.ReduceOp, op)
            for size in SIZES:
                what = f"{op} of {size} {kind}"
                arrays, result = operands(op, ranks, size)
                own = tensor(arrays[rank], kind)
                dist.all_reduce(own, reduce_op)
                expect(own, result, "all_reduce, " + what)
                root = size % ranks
                own = tensor(arrays[rank], kind)
                dist.reduce(own, root, reduce_op)
                if rank == root:
                    expect(own, result, f"reduce to {root}, " + what)
                # A part for each rank.
                parts = [operands(op, ranks, size, seed) for seed in range(ranks)]
                mine = [tensor(parts[part][0][rank], kind) for part in range(ranks)]
                output = torch.empty(size, dtype=mine[0].dtype)
                dist.reduce_scatter(output, mine, reduce_op)
                expect(output, parts[rank][1], "reduce_scatter, " + what)
                output.zero_()
                dist.reduce_scatter_tensor(output, torch.cat(mine), reduce_op)
                expect(output, parts[rank][1], "reduce_scatter_tensor, " + what)
                count += 4
    return count


def copies(rank, ranks):
    count = 0
    for kind in COPIED:
        for size in SIZES:
            what = f"{size} {kind}"
            own = tensor(values(rank, size), kind)
            all_values = [numbers(tensor(values(peer, size), kind)) for peer in range(ranks)]
            root = (size + 1) % ranks

            result = own.clone()
            dist.broadcast(result, root)
            expect(result, all_values[root], f"broadcast from {root}, {what}")

            results = [torch.empty_like(own) for _ in range(ranks)]
            dist.all_gather(results, own)
            for peer in range(ranks):
                expect(results[peer], all_values[peer], f"all_gather from {peer}, {what}")
            result = torch.empty(ranks * size, dtype=own.dtype)
            dist.all_gather_into_tensor(result, own)
            expect(result, np.concatenate(all_values), f"all_gather_into_tensor, {what}")

            results = [torch.empty_like(own) for _ in range(ranks)] if rank == root else None
            dist.gather(own, results, root)
            for peer in range(ranks if rank == root else 0):
                expect(results[peer], all_values[peer], f"gather from {peer}, {what}")

            parts = [tensor(values(root, size, part), kind) for part in range(ranks)] if rank == root else None
            result = torch.empty_like(own)
            dist.scatter(result, parts, root)
            expect(result, numbers(tensor(values(root, size, rank), kind)), f"scatter from {root}, {what}")

            # Of rank r for rank p: more rows the larger both are, and none from 0 to 0.
            def rows(source, target):
                return size * (source + target) // (2 * ranks)

            def part(source, target):
                return tensor(values(source, rows(source, target), target), kind)
            sent = [part(rank, peer) for peer in range(ranks)]
            results = [torch.empty(rows(peer, rank), dtype=own.dtype) for peer in range(ranks)]
            dist.all_to_all(results, sent)
            for peer in range(ranks):
                expect(results[peer], numbers(part(peer, rank)), f"all_to_all from {peer}, {what}")
            result = torch.empty(sum(rows(peer, rank) for peer in range(ranks)), dtype=own.dtype)
            dist.all_to_all_single(result, torch.cat(sent), [rows(peer, rank) for peer in range(ranks)],
                                   [rows(rank, peer) for peer in range(ranks)])
            expect(result, np.concatenate([numbers(part(peer, rank)) for peer in range(ranks)]), f"uneven all_to_all_single, {what}")
            even = torch.cat([tensor(values(rank, size, peer), kind) for peer in range(ranks)])
            result = torch.empty_like(even)
            dist.all_to_all_single(result, even)
            expect(result, np.concatenate([numbers(tensor(values(peer, size, rank), kind)) for peer in range(ranks)]),
                   f"all_to_all_single, {what}")

            # To the next rank and from the one before.
            if ranks > 1:
                result = torch.empty_like(own)
                pending = [dist.isend(own, (rank + 1) % ranks, tag=size), dist.irecv(result, (rank - 1) % ranks, tag=size)]
                for work in pending:
                    work.wait()
                expect(result, all_values[(rank - 1) % ranks], f"send and recv, {what}")
            count += 9
    dist.barrier()
    return count


def shapes(rank, ranks):
    """Tensors that are not packed, or have several dimensions."""
    base = tensor(values(rank, 60), "float32", (6, 10))
    total = sum(values(peer, 60) for peer in range(ranks)).reshape(6, 10)
    own = base.clone().t()
    assert not own.is_contiguous()
    dist.all_reduce(own)
    expect(own.contiguous(), total.T.copy(), "all_reduce of a transposed tensor")
    every_other = base.clone()[:, ::2]
    dist.all_reduce(every_other)
    expect(every_other.contiguous(), total[:, ::2].copy(), "all_reduce of every other column")
    received = torch.zeros(10, 6).t()
    source = base.clone() if rank == 0 else received
    dist.broadcast(source, 0)
    expect(source.contiguous(), values(0, 60), "broadcast to a transposed tensor")
    results = [torch.zeros(10, 6).t() for _ in range(ranks)]
    dist.all_gather(results, base)
    for peer in range(ranks):
        expect(results[peer].contiguous(), values(peer, 60), "all_gather to transposed tensors")
    # The input is a part of the output, as sharded parameters are gathered.
    whole = torch.zeros(ranks, 60)
    whole[rank] = base.reshape(-1)
    dist.all_gather_into_tensor(whole, whole[rank])
    expect(whole, np.concatenate([values(peer, 60) for peer in range(ranks)]), "all_gather_into_tensor in place")
    flags = torch.tensor([rank == 0, True, False])
    dist.all_reduce(flags, dist.ReduceOp.MAX)
    assert flags.tolist() == [True, True, False]
    number = torch.tensor(float(rank))
    dist.all_reduce(number)
    assert number.item() == ranks * (ranks - 1) / 2
    high = torch.tensor([255 - rank, 128, 127, 1], dtype=torch.uint8)
    dist.all_reduce(high, dist.ReduceOp.MAX)
    assert high.tolist() == [255, 128, 127, 1]
    objects = [None] * ranks
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * 1000 * rank})
    assert [len(one["text"]) for one in objects] == [1000 * peer for peer in range(ranks)]
    complex_sum = torch.full((3,), complex(rank, 1))
    dist.all_reduce(complex_sum)
    assert complex_sum[0].item() == complex(ranks * (ranks - 1) / 2, ranks)


def coalesced(rank, ranks):
    sizes = [3, 0, 5000, 1, 17, 2, 9, 8, 4, 6]
    mine = [tensor(values(rank, size), "float32") for size in sizes]
    dist.all_reduce_coalesced(mine)
    for size, result in zip(sizes, mine):
        expect(result, sum(values(peer, size) for peer in range(ranks)), "all_reduce_coalesced")
    group = dist.group.WORLD
    inputs = [tensor(values(rank, size), "int64") for size in sizes]
    outputs = [torch.empty(size * ranks, dtype=torch.int64) for size in sizes]
    group.allgather_into_tensor_coalesced(outputs, inputs).wait()
    for size, result in zip(sizes, outputs):
        expect(result, np.concatenate([values(peer, size) for peer in range(ranks)]), "allgather_into_tensor_coalesced")
    lists = [[torch.empty(size, dtype=torch.int64) for size in sizes] for _ in range(ranks)]
    dist.all_gather_coalesced(lists, inputs)
    for peer in range(ranks):
        for size, result in zip(sizes, lists[peer]):
            expect(result, values(peer, size), f"all_gather_coalesced from {peer}")
    inputs = [torch.cat([tensor(values(rank, size, part), "float64") for part in range(ranks)]) for size in sizes]
    outputs = [torch.empty(size, dtype=torch.float64) for size in sizes]
    group.reduce_scatter_tensor_coalesced(outputs, inputs).wait()
    for size, result in zip(sizes, outputs):
        expect(result, sum(values(peer, size, rank) for peer in range(ranks)), "reduce_scatter_tensor_coalesced")


def asynchronous(rank, ranks):
    """Many collectives under way at once, with their works and futures."""
    tensors = [tensor(values(rank, 1 + 997 * i, i), "float32") for i in range(40)]
    order = []
    works = []
    for i, one in enumerate(tensors):
        work = dist.all_reduce(one, async_op=True) if i % 3 else dist.broadcast(one, i % ranks, async_op=True)
        work.get_future().then(lambda _, i=i: order.append(i))
        works.append(work)
    for i, work in reversed(list(enumerate(works))):
        assert work.wait()
        assert work.is_completed() and work.is_success() and work.exception() is None
        expected = sum(values(peer, 1 + 997 * i, i) for peer in range(ranks)) if i % 3 else values(i % ranks, 1 + 997 * i, i)
        expect(tensors[i], expected, f"collective {i}")
    dist.barrier()
    assert order == list(range(40)), order
    # A future's value is the result.
    own = torch.full((4,), float(rank))
    future = dist.all_reduce(own, async_op=True).get_future().then(lambda done: done.value()[0] * 2)
    expect(future.wait(), [ranks * (ranks - 1)] * 4, "then")
    # Sends go beside collectives, whatever their order.
    if ranks > 1:
        received = torch.zeros(5)
        pending = dist.irecv(received, (rank - 1) % ranks, tag=3)
        dist.all_reduce(torch.ones(3))
        dist.send(torch.full((5,), float(rank)), (rank + 1) % ranks, tag=3)
        assert pending.wait() and received[0].item() == (rank - 1) % ranks


def tags(rank, ranks):
    """Messages find their tags in any order, those of one tag in theirs, and any sender its receiver."""
    if rank == 0:
        for number in range(6):
            dist.send(torch.tensor([number]), 1, tag=number % 2)
        dist.send(torch.zeros(300000), 1, tag=9)  # as large as a message that waits for its receive
    elif rank == 1:
        one = torch.zeros(1, dtype=torch.int64)
        got = {0: [], 1: []}
        for tag in (1, 1, 0, 1, 0, 0):
            dist.recv(one, 0, tag=tag)
            got[tag].append(one.item())
        assert got == {0: [0, 2, 4], 1: [1, 3, 5]}
        dist.recv(torch.ones(300000), 0, tag=9)
    dist.barrier()
    if rank == 0:
        senders = set()
        for _ in range(ranks - 1):
            one = torch.zeros(1)
            sender = dist.recv(one)
            assert one.item() == sender
            senders.add(sender)
        assert senders == set(range(1, ranks))
    else:
        dist.send(torch.tensor([float(rank)]), 0)
    dist.barrier()


def groups(rank, ranks):
    """Overlapping groups, and the world, used in turn and at once."""
    low, high = dist.new_group([0, 1]), dist.new_group(list(range(1, ranks)))
    everyone = dist.new_group()
    for round_number in range(20):
        works = []
        for group, members in ((low, [0, 1]), (everyone, list(range(ranks))), (high, list(range(1, ranks)))):
            if rank in members:
                own = torch.full((100,), float(rank + round_number))
                expected = sum(member + round_number for member in members)
                works.append((dist.all_reduce(own, group=group, async_op=True), own, expected))
        for work, own, expected in works:
            work.wait()
            expect(own, [expected] * 100, "all_reduce of a group")
    if rank in (0, 1):
        result = torch.tensor([rank])
        dist.broadcast(result, 1, group=low)
        assert result.item() == 1
        dist.destroy_process_group(low)
    dist.barrier()


def again(rank, ranks, path):
    """Ends and begins with the same store, whose file goes with its last user."""
    store = stores(path, ranks)
    for number in range(3):
        own = torch.tensor([float(number)])
        dist.all_reduce(own)
        assert own.item() == number * ranks
        if number == 0:
            try:
                dist.init_process_group("braid", init_method="file://" + path, rank=rank, world_size=ranks)
                raise AssertionError("a second init_process_group does not fail")
            except ValueError as error:
                assert "twice" in str(error)
        if number < 2:
            dist.destroy_process_group()
            dist.init_process_group("braid", store=store, rank=rank, world_size=ranks,
                                    timeout=datetime.timedelta(seconds=30))


def stores(path, ranks):
    return dist.FileStore(path + ".again", ranks)


def dropped(rank, ranks, path):
    """The last reference to a backend may end in a callback, which runs on its own thread."""
    import braid_c10d
    backend = braid_c10d.Backend(stores(path, ranks), rank, ranks, datetime.timedelta(seconds=30), "dropped", [])
    kept = [backend]
    own = torch.ones(3)
    work = backend.allreduce(own)
    later = work.get_future().then(lambda _: (time.sleep(0.2), kept.clear()))
    del backend
    later.wait()
    assert not kept and own[0].item() == ranks
    dist.barrier()


def ahead(rank, ranks):
    """A root that is ahead of the others by far has their memory, not a failure."""
    one = torch.zeros(1000)
    works = []
    for number in range(3000):
        one = torch.full((1000,), float(number))
        works.append((dist.broadcast(one, 0, async_op=True), one))
        if rank and number % 1000 == 0:
            time.sleep(0.05)
    for number, (work, one) in enumerate(works):
        work.wait()
        assert one[0].item() == one[-1].item() == number


def gloo_results(rank, ranks):
    """The same collectives by Gloo and by Braid, on random values: sums of two ranks have the same bits."""
    gloo = dist.new_group(backend="gloo")
    generator = torch.Generator().manual_seed(rank)
    different = 0
    for kind in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        for size in (1, 1001, 65536):
            own = torch.randn(size, generator=generator).to(kind)
            ours, theirs = own.clone(), own.clone()
            dist.all_reduce(ours)
            dist.all_reduce(theirs, group=gloo)
            if ranks == 2:
                assert torch.equal(ours, theirs), f"all_reduce of {size} {kind}"
            else:
                tolerance = {torch.float32: 1e-6, torch.float64: 1e-14, torch.bfloat16: 2e-2, torch.float16: 2e-3}[kind]
                torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance * 4)
            different += not torch.equal(ours, theirs)
            ours, theirs = (torch.empty(size * ranks, dtype=kind) for _ in range(2))
            dist.all_gather_into_tensor(ours, own)
            dist.all_gather_into_tensor(theirs, own, group=gloo)
            assert torch.equal(ours, theirs)
            ours, theirs = own.clone(), own.clone()
            dist.broadcast(ours, ranks - 1)
            dist.broadcast(theirs, ranks - 1, group=gloo)
            assert torch.equal(ours, theirs)
    return different


def refusals(rank, ranks):
    """Arguments that are refused before anything is sent: the next collective goes on."""
    def refused(call, kind, *words):
        try:
            call()
        except kind as error:
            text = str(error)
            assert all(word in text for word in words), text
        else:
            raise AssertionError(f"not refused: {words}")
    refused(lambda: dist.all_reduce(torch.zeros(3, dtype=torch.int16)), TypeError, "all_reduce (sum) of Short", "expects f32")
    refused(lambda: dist.all_reduce(torch.zeros(3, dtype=torch.bool)), TypeError, "all_reduce (sum) of bool")
    refused(lambda: dist.all_reduce(torch.zeros(3, dtype=torch.int32), dist.ReduceOp.AVG), TypeError, "all_reduce (avg) of i32")
    refused(lambda: dist.all_reduce(torch.zeros(3), dist.ReduceOp.BAND), TypeError, "all_reduce (band) of f32")
    refused(lambda: dist.all_gather_into_tensor(torch.zeros(3 * ranks + 1), torch.zeros(3)), ValueError, "all_gather_into_tensor",
            str(3 * ranks + 1))
    refused(lambda: dist.reduce_scatter_tensor(torch.zeros(3), torch.zeros(3 * ranks, dtype=torch.float64)), TypeError, "f64", "f32")
    refused(lambda: dist.all_to_all_single(torch.zeros(4), torch.zeros(4), [1] * ranks, [5] * ranks), RuntimeError, "Split sizes")
    refused(lambda: dist.all_to_all_single(torch.zeros(2 * ranks), torch.zeros(3 * ranks)), ValueError, "keeps 3", "expects 2")
    refused(lambda: dist.send(torch.zeros(1), (rank + 1) % ranks, tag=-1), ValueError, "a tag of 0 or more, got -1")
    refused(lambda: dist.all_gather([torch.zeros(3), *[torch.zeros(4)] * (ranks - 1)], torch.zeros(3)), ValueError, "4 f32", "3 f32")
    own = torch.ones(2)
    dist.all_reduce(own)
    assert own[0].item() == ranks


# ---- Faults. The result is the error's text, or "none".

def error_of(call):
    start = time.monotonic()
    try:
        call()
    except dist.DistBackendError as error:
        return str(error), time.monotonic() - start
    return "none", time.monotonic() - start


def sizes_differ(rank, ranks):
    first = error_of(lambda: dist.all_reduce(torch.ones(8 if rank else 9)))
    return first, error_of(lambda: dist.all_reduce(torch.ones(8)))


def types_differ(rank, ranks):
    return error_of(lambda: dist.all_gather_into_tensor(torch.ones(2 * ranks, dtype=torch.float32 if rank else torch.int32),
                                                        torch.ones(2, dtype=torch.float32 if rank else torch.int32)))


def orders_differ(rank, ranks):
    def both():
        one, other = torch.ones(8), torch.ones(8)
        first, second = (dist.all_reduce, lambda t: dist.broadcast(t, 0))[::-1 if rank else 1]
        first(one)
        second(other)
    return error_of(both)


def roots_differ(rank, ranks):
    """Two ranks that only send: nobody waits until a round ends."""
    def many():
        for _ in range(1000):
            dist.broadcast(torch.ones(8), rank)
    return error_of(many)


def splits_differ(rank, ranks):
    def both():
        dist.all_to_all_single(torch.zeros(4 if rank else 5), torch.zeros(4), [2, 2] if rank else [2, 3], [2, 2])
        dist.barrier()
    return error_of(both)


def message_sizes_differ(rank, ranks):
    if rank == 0:
        return error_of(lambda: dist.send(torch.ones(3), 1, tag=2))
    return error_of(lambda: dist.recv(torch.ones(4), 0, tag=2))


def one_waits(rank, ranks):
    if rank == 0:
        return error_of(lambda: dist.all_reduce(torch.ones(8)))
    time.sleep(3)
    return error_of(lambda: dist.all_reduce(torch.ones(8)))


def one_receives(rank, ranks):
    if rank == 0:
        return error_of(lambda: dist.recv(torch.ones(8), 1, tag=4))
    time.sleep(3)


def one_wait_times_out(rank, ranks):
    """A wait may give up before the collective does; the collective goes on."""
    if rank:
        time.sleep(1)
    own = torch.ones(4)
    work = dist.all_reduce(own, async_op=True)
    text = "none"
    if rank == 0:
        try:
            work.wait(datetime.timedelta(milliseconds=100))
        except dist.DistBackendError as error:
            text = str(error)
        assert not work.is_completed()
    work.wait()
    assert own[0].item() == ranks
    return text


def one_leaves(rank, ranks):
    if rank == 1:
        dist.destroy_process_group()
        return None
    return error_of(lambda: dist.all_reduce(torch.ones(8)))


def last_words(rank, ranks):
    """What a rank sends before it ends arrives."""
    if rank == 0:
        for _ in range(50):
            dist.broadcast(torch.full((20000,), 7.0), 0)
        dist.destroy_process_group()
        return None
    time.sleep(0.5)
    for _ in range(50):
        own = torch.zeros(20000)
        dist.broadcast(own, 0)
        assert own.min().item() == own.max().item() == 7
    return None


def one_dies(rank, ranks):
    dist.all_reduce(torch.ones(8))
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    works = [dist.all_reduce(torch.ones(8), async_op=True) for _ in range(3)]
    texts = [error_of(work.wait) for work in works]
    assert not works[2].is_success() and "braid" in str(works[2].exception())
    return texts[0], texts[2], error_of(lambda: dist.barrier())


def one_dies_amid(rank, ranks):
    """While large collectives are under way."""
    own = torch.ones(1 << 21)
    def many():
        for number in range(1000):
            if rank == 1 and number == 5:
                dist.all_reduce(own, async_op=True)
                os.kill(os.getpid(), signal.SIGKILL)
            dist.all_reduce(own)
    return error_of(many)


def one_stops(rank, ranks):
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    return error_of(lambda: dist.all_reduce(torch.ones(8)))


def aborts(rank, ranks):
    if rank == 1:
        time.sleep(0.3)
        dist.group.WORLD._get_backend(torch.device("cpu")).abort()
        return error_of(lambda: dist.barrier())
    return error_of(lambda: dist.all_reduce(torch.ones(8)))


def secrets(rank, ranks):
    own = torch.ones(1)
    dist.all_reduce(own)
    return own.item()


# ---- Training

def train(rank, ranks, steps=8):
    """The losses and a digest of the parameters of a small model, trained with DistributedDataParallel."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 64), torch.nn.Tanh(),
                                torch.nn.Linear(64, 4))
    if rank:  # DistributedDataParallel gives all ranks the parameters of rank 0
        for parameter in model.parameters():
            parameter.data.add_(rank)
    parallel = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.01)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1, momentum=0.9)
    generator = torch.Generator().manual_seed(100 + rank)
    losses = []
    for _ in range(steps):
        inputs = torch.randn(8, 16, generator=generator)
        loss = (parallel(inputs) - inputs[:, :4].cumsum(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shared = loss.detach().clone()
        dist.all_reduce(shared, dist.ReduceOp.SUM)
        losses.append(shared.item() / ranks)
    digest = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
    everywhere = torch.empty(ranks * digest.numel())
    dist.all_gather_into_tensor(everywhere, digest)
    everywhere = everywhere.reshape(ranks, -1)
    assert all(torch.equal(everywhere[0], everywhere[peer]) for peer in range(ranks)), "ranks have different parameters"
    return losses, digest.numpy().tobytes()
