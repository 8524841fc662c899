# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the tools, and checks what must hold for every run, successful or not."""
import dataclasses
import os
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BRAID_BUILD_DIR", ROOT / "build"))
BIN = BUILD / "bin"

OK, BAD_INPUT, CHECK_FAILED, RANK_FAILED = 0, 1, 2, 3


@dataclasses.dataclass
class Result:
    command: list
    code: int
    out: str
    err: str
    seconds: float

    def __str__(self):
        tail = lambda text: text if len(text) < 4000 else text[:1000] + "\n[...]\n" + text[-3000:]
        return (f"\n$ {' '.join(self.command)}\nexit status {self.code} after {self.seconds:.1f} s\n"
                f"--- stdout\n{tail(self.out)}\n--- stderr\n{tail(self.err)}")


def run(tool, *args, expect=OK, timeout=120, cwd=None):
    """Runs build/bin/<tool>. A signal, a hang, a status other than `expect`, or a failure without a message fails the
    test."""
    command = [str(BIN / tool), *map(str, args)]
    start = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout,
                              stdin=subprocess.DEVNULL, cwd=cwd)
    except subprocess.TimeoutExpired as hang:
        raise AssertionError(f"still running after {timeout} s: {' '.join(command)}\n"
                             f"{(hang.stderr or b'')[-2000:]}") from None
    result = Result(command, done.returncode, done.stdout, done.stderr, time.monotonic() - start)
    assert result.code >= 0, f"ended by signal {-result.code}{result}"
    assert result.code == expect, f"expected exit status {expect}{result}"
    if expect != OK:
        assert result.err.strip(), f"failed without a word on standard error{result}"
        for sign in ("Stack dump", "PLEASE submit a bug report", "Assertion `", "terminate called", "LLVM ERROR",
                     "AddressSanitizer", "runtime error:"):
            assert sign not in result.err, f"crashed{result}"
    return result


def braid(*args, **kwargs):
    return run("braid", *args, **kwargs)


def braid_run(*args, **kwargs):
    return run("braid-run", *args, **kwargs)


def of_process(pid, file):
    """What /proc says of a process; "" once it has ended, which it may between any two looks at it."""
    try:
        return pathlib.Path(f"/proc/{pid}/{file}").read_text(errors="surrogateescape")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def of_threads(pid, file):
    """What /proc says of each thread of a process; "" for one that has ended."""
    try:
        return [of_process(pid, f"task/{task.name}/{file}") for task in pathlib.Path(f"/proc/{pid}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def ranks_of(mesh):
    ranks = 1
    for axis in mesh.split(","):
        ranks *= int(axis.split("=")[1])
    return ranks


def input_args(inputs):
    return [arg for name, path in sorted(inputs.items()) for arg in ("--input", f"{name}={path}")]


def import_model(directory, out, batch, seq, *options, **kwargs):
    braid("import", directory, "--batch", batch, "--seq", seq, *options, "-o", out, **kwargs)
    return out


def compile_model(model, out, mesh, **kwargs):
    braid("compile", model, "--mesh", mesh, "--target", "cpu", "-o", out, **kwargs)
    return out
