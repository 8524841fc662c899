# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The start of the ranks of test_c10d.py, each a process that runs a function of c10d_cases.py."""
import contextlib
import datetime
import multiprocessing
import os
import pathlib
import sys
import tempfile
import time
import traceback

import c10d_cases
from c10d_cases import dist, torch


def rank_process(case, rank, ranks, path, backend, limit, environment, arguments, pipe):
    os.environ.update(environment)
    torch.set_num_threads(1)
    try:
        import braid_c10d  # noqa: F401
        dist.init_process_group(backend, init_method="file://" + path, rank=rank, world_size=ranks,
                                timeout=datetime.timedelta(seconds=limit))
        result = ("ok", getattr(c10d_cases, case)(rank, ranks, *arguments))
        if dist.is_initialized():
            dist.destroy_process_group()
    except BaseException as error:
        result = ("error", f"{type(error).__name__}: {error}\n{traceback.format_exc()}")
    pipe.send(result)
    pipe.close()


def start_server(package):
    """Ranks are forked from a process that has imported PyTorch, and what its optimizers import."""
    paths = [str(package), str(pathlib.Path(__file__).parent)]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths + [p for p in [os.environ.get("PYTHONPATH")] if p])
    sys.path[:0] = [path for path in paths if path not in sys.path]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["c10d_ranks", "braid_c10d", "torch._dynamo"])
    return context


@contextlib.contextmanager
def rank_processes(context, case, ranks, *arguments, backend="braid", limit=30, environment=None, of_rank=None):
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "store")
        arguments = [path if argument == "PATH" else argument for argument in arguments]
        processes, pipes = [], []
        for rank in range(ranks):
            here, there = context.Pipe(duplex=False)
            variables = {**(environment or {}), **((of_rank or {}).get(rank, {}))}
            process = context.Process(target=rank_process, daemon=True,
                                      args=(case, rank, ranks, path, backend, limit, variables, arguments, there))
            process.start()
            there.close()
            processes.append(process)
            pipes.append(here)
        try:
            yield processes, pipes
        finally:
            for process in processes:
                if process.is_alive():
                    process.kill()
                process.join()


def outcomes(context, case, ranks, *arguments, within=60, lost=(), **options):
    """What came of each rank, None for those that are lost."""
    results = []
    with rank_processes(context, case, ranks, *arguments, **options) as (processes, pipes):
        until = time.monotonic() + within
        for rank in range(ranks):
            if rank in lost:
                results.append(None)
                continue
            assert pipes[rank].poll(max(0, until - time.monotonic())), f"{case}: rank {rank} of {ranks} has not ended after {within} s"
            try:
                results.append(pipes[rank].recv())
            except EOFError:
                processes[rank].join(5)
                raise AssertionError(f"{case}: rank {rank} of {ranks} died with status {processes[rank].exitcode}") from None
    return results


def run(context, case, ranks, *arguments, **options):
    """The results of all ranks that are not lost; an error of any fails the test."""
    results = outcomes(context, case, ranks, *arguments, **options)
    wrong = [f"{case}: rank {rank} of {ranks}: {result[1]}" for rank, result in enumerate(results) if result and result[0] != "ok"]
    assert not wrong, "\n".join(wrong)
    return [None if result is None else result[1] for result in results]
