# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes of a C program that meet by an exchange of their own: files, or MPI_Allgather. Rank 0 has inputs and results."""
import json
import os
import shutil
import socket
import subprocess

import pytest

from braidtest import BAD_INPUT, BIN, BUILD, RANK_FAILED, ROOT

pytestmark = pytest.mark.usefixtures("ucx")
PROGRAM = BIN / "braid-test-own-exchange"
NOT_OUTPUTS = ("call", "report.json", "trace.json")


def outputs(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(NOT_OUTPUTS)}


@pytest.fixture
def expected(tmp_path, bundle_of):
    """The outputs of ranks that are threads."""
    def of(bundle):
        folder = tmp_path / "threads"
        folder.mkdir()
        subprocess.run([PROGRAM, bundle, folder], check=True, timeout=120)
        assert outputs(folder)
        return outputs(folder)
    return of


def run_all(bundle, folder, what="", size=2, environment=None, bundles=None):
    """The exit status and error of each rank."""
    folder.mkdir()
    processes = [subprocess.Popen([PROGRAM, (bundles or {}).get(rank, bundle), folder, str(rank), str(size), what],
                                  stderr=subprocess.PIPE, text=True, env={**os.environ, **(environment(rank) if environment else {})})
                 for rank in range(size)]
    try:
        said = [process.communicate(timeout=120)[1].strip() for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return [(process.returncode, text) for process, text in zip(processes, said)]


@pytest.mark.parametrize("name, size", [("chunks.mlir", 2), ("hierarchical.mlir", 4)])
def test_results_have_the_bits_of_threads(name, size, bundle_of, expected, tmp_path):
    bundle = bundle_of(name)
    assert run_all(bundle, tmp_path / "processes", size=size) == [(0, "")] * size
    assert outputs(tmp_path / "processes") == expected(bundle)
    report = json.loads((tmp_path / "processes" / "report.json").read_text())
    assert [rank["rank"] for rank in report["per_rank"]] == list(range(size)) and report["runs"] == 3
    trace = json.loads((tmp_path / "processes" / "trace.json").read_text())
    assert {event["pid"] for event in trace["traceEvents"]} == set(range(size))


def test_mpi(bundle_of, expected, tmp_path):
    if not shutil.which("mpicc") or not shutil.which("mpirun"):
        pytest.skip("Open MPI is not installed")
    program = tmp_path / "own-exchange-mpi"
    subprocess.run(["mpicc", "-DUSE_MPI", "-Wall", "-Werror", "-I", ROOT / "runtime/include", ROOT / "test/lib/own-exchange/OwnExchange.c",
                    "-o", program, "-L", BUILD / "lib", "-lBraidRuntime", f"-Wl,-rpath,{BUILD / 'lib'}"], check=True, timeout=60)
    bundle, folder = bundle_of("chunks.mlir"), tmp_path / "processes"
    folder.mkdir()
    done = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", program, bundle, folder], capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not list(folder.glob("call*")) and outputs(folder) == expected(bundle)


def test_processes_that_a_launcher_started(bundle_of, expected, tmp_path):
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]

    def environment(rank):
        return {"BRAID_RANK": str(rank), "BRAID_SIZE": "2", "BRAID_RENDEZVOUS": f"tcp://127.0.0.1:{port}"}
    bundle = bundle_of("chunks.mlir")
    assert run_all(bundle, tmp_path / "processes", "join", environment=environment) == [(0, "")] * 2
    assert outputs(tmp_path / "processes") == expected(bundle)
    [(code, text)] = run_all(bundle, tmp_path / "alone", "join", size=1)
    assert code == BAD_INPUT and text.startswith("no launcher started this process")


@pytest.mark.parametrize("what, message", [
    ("fails", "rank {}: the caller's all_gather of 24 bytes failed with 7"),
    ("swaps", "the caller's all_gather gives of process {other} what rank {} sent"),
    ("forgets", "rank {}: the caller's all_gather expects to give process {}'s 24 bytes at {} times 24, got other bytes there"),
])
def test_an_exchange_that_is_wrong(what, message, bundle_of, tmp_path):
    for rank, (code, text) in enumerate(run_all(bundle_of("chunks.mlir"), tmp_path / "folder", what)):
        assert (code, text) == (RANK_FAILED, message.format(rank, rank, rank, other=1 - rank))


def test_processes_that_differ(bundle_of, tmp_path):
    said = run_all(bundle_of("chunks.mlir"), tmp_path / "secrets", "secret")
    assert said == [(RANK_FAILED, "rank 1 and rank 0 have different job secrets"), (RANK_FAILED, "rank 0 and rank 1 have different job secrets")]
    # All say the same of another bundle.
    said = run_all(bundle_of("chunks.mlir"), tmp_path / "bundles", bundles={1: bundle_of("slices.mlir")})
    assert said[0] == said[1] and said[0][0] == RANK_FAILED
    assert said[0][1].startswith("rank 1 (host '") and "has the bundle with SHA-256" in said[0][1]
    assert run_all(bundle_of("chunks.mlir"), tmp_path / "three", size=3) == [
        (BAD_INPUT, f"the bundle has a mesh of 2 ranks, this process is rank {rank} of 3") for rank in range(3)]
