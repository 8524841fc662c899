# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks that are processes of their own and talk over UCX: on this host and on test hosts, started by every launcher that is here,
with the results of ranks that are threads, bit by bit."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from braidtest import BAD_INPUT, BIN, RANK_FAILED, ROOT, braid, braid_run

sys.path.insert(0, str(ROOT / "test/lab"))
from lab import Lab, LabUnavailable  # noqa: E402

EXAMPLES, INPUTS = ROOT / "examples/programs", ROOT / "test/Integration/Inputs"
# Every kind of collective and of placing, and how many ranks each has.
PROGRAMS = {"chunks.mlir": 2, "slices.mlir": 2, "hierarchical.mlir": 4, "between.mlir": 2, "accumulate.mlir": 2, "context.mlir": 2,
            "ring.py 3 --both-ways": 3, "weights.py 4": 2, "pipeline.py 2 4 --tp 2": 4}
RANDOM = ["--random-weights", 3, "--random-inputs", 1]


@pytest.fixture(scope="module", autouse=True)
def ucx():
    findings = json.loads(braid("doctor", "--json").out)["findings"]
    if any(finding["name"] == "UCX" and finding["state"] == "absent" for finding in findings):
        pytest.skip("this machine has no UCX; scripts/setup.sh installs it")


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    """Stands in for ssh: takes its command line, and runs the command here."""
    path = tmp_path_factory.mktemp("agent") / "agent"
    path.write_text('#!/bin/bash\nwhile [[ $1 == -* ]]; do shift; done\nshift\nexec bash -c "$*"\n')
    path.chmod(0o755)
    return path


@pytest.fixture(scope="module")
def bundle_of(tmp_path_factory):
    made = {}

    def bundle(name):
        if name not in made:
            folder = tmp_path_factory.mktemp("bundle")
            script, *arguments = name.split()
            path = INPUTS / name if (INPUTS / name).exists() else EXAMPLES / script
            if script.endswith(".py"):
                path = folder / "program.mlir"
                command = [sys.executable, EXAMPLES / script, *arguments]
                path.write_text(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            made[name] = folder / "program.braid"
            mesh = ["--mesh", "tp=2"] if script == "generation.py" else []
            braid("compile", path, *mesh, "-o", made[name])
        return made[name]

    return bundle


def results(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_have_the_bits_of_threads(name, bundle_of, agent, tmp_path):
    bundle = bundle_of(name)
    braid_run(bundle, *RANDOM, "--output", tmp_path / "threads")
    done = braid_run(bundle, *RANDOM, "--repeat", 5, "--hosts", f"localhost:{PROGRAMS[name]}", "--agent", agent, "--output",
                     tmp_path / "processes", "--time-limit", 30)
    assert results(tmp_path / "processes") == results(tmp_path / "threads")
    # Rank 0 speaks for all.
    assert {line.split("]")[0] for line in done.out.splitlines()} == {"[0@localhost"}, done


def test_states_and_checks(bundle_of, agent, tmp_path):
    bundle = bundle_of("generation.py")
    for entry in ("prefill", "decode", "whole"):
        out = braid("run", bundle, "--entry", entry, *RANDOM, "--hosts", "localhost:2", "--agent", agent, "--check", "reference",
                    "--report", tmp_path / "report.json", "--time-limit", 30).out
        assert "passed" in out and "FAILED" not in out
        report = json.loads((tmp_path / "report.json").read_text())
        assert report["transport"] == "ucx" and report["ranks"] == 2
        # This process has memory and commands of its own rank only.
        assert [rank["rank"] for rank in report["per_rank"]] == [0]


@pytest.fixture(scope="module")
def lab():
    try:
        with Lab(hosts=2, rate="1gbit", share=0.9) as made:
            yield made
    except LabUnavailable as error:
        pytest.skip(f"no test hosts here: {error}")


@pytest.mark.parametrize("name, counts", [("chunks.mlir", (1, 1)), ("hierarchical.mlir", (2, 2)), ("pipeline.py 2 4 --tp 2", (1, 3))])
def test_two_hosts(name, counts, bundle_of, lab, tmp_path):
    bundle = bundle_of(name)
    braid_run(bundle, *RANDOM, "--output", tmp_path / "threads")
    hosts = ",".join(f"{address}:{count}" for address, count in zip(lab.addresses, counts))
    command = [BIN / "braid-run", bundle, *RANDOM, "--hosts", hosts, "--agent", lab.agent, "--output", tmp_path / "hosts", "--time-limit", 30]
    done = lab.run(0, [str(word) for word in command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert results(tmp_path / "hosts") == results(tmp_path / "threads")


LAUNCHERS = {
    "torchrun": [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", 2, "--no-python"],
    "mpirun": ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", 2],
}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_launchers(launcher, bundle_of, tmp_path):
    if launcher == "torchrun":
        pytest.importorskip("torch")
    elif not shutil.which(launcher):
        pytest.skip(f"{launcher} is not installed")
    bundle = bundle_of("chunks.mlir")
    braid_run(bundle, *RANDOM, "--output", tmp_path / "threads")
    port = free_port()
    words = [*LAUNCHERS[launcher], *(["--master-port", port] if launcher == "torchrun" else []), BIN / "braid-run", bundle, *RANDOM,
             "--output", tmp_path / "processes", "--time-limit", 60]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    assert results(tmp_path / "processes") == results(tmp_path / "threads")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Ranks:
    """Two ranks that this test starts itself."""

    def __init__(self, bundle, *words, bundles=None, timeout=5):
        port = free_port()
        self.processes = []
        for rank in range(2):
            environment = {**os.environ, "BRAID_RANK": str(rank), "BRAID_SIZE": "2", "BRAID_RENDEZVOUS": f"tcp://127.0.0.1:{port}"}
            command = [BIN / "braid-run", (bundles or {}).get(rank, bundle), *RANDOM, "--time-limit", timeout, *words]
            self.processes.append(subprocess.Popen([str(word) for word in command], env=environment, stdout=subprocess.PIPE,
                                                   stderr=subprocess.PIPE, text=True))

    def ends(self, timeout=60):
        said = [process.communicate(timeout=timeout) for process in self.processes]
        return [(process.returncode, err) for process, (_, err) in zip(self.processes, said)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.mark.parametrize("lost", [0, 1])
def test_a_killed_rank_is_named(lost, bundle_of):
    with Ranks(bundle_of("chunks.mlir"), "--repeat", 10**9) as ranks:
        time.sleep(4)  # they run
        assert all(process.poll() is None for process in ranks.processes)
        ranks.processes[lost].kill()
        begin = time.monotonic()
        code, err = ranks.ends()[1 - lost]
        assert code == RANK_FAILED and f"rank {lost}" in err, err
        assert err.count("error:") == 1, err
        assert time.monotonic() - begin < 6 + 10  # the limit and a second, on a machine that does much else


def test_a_stopped_rank_is_named(bundle_of):
    with Ranks(bundle_of("chunks.mlir"), "--repeat", 10**9, timeout=3) as ranks:
        time.sleep(4)
        ranks.processes[1].send_signal(signal.SIGSTOP)
        try:
            _, err = ranks.processes[0].communicate(timeout=60)
            assert ranks.processes[0].returncode == RANK_FAILED and "rank 1" in err, err
        finally:
            ranks.processes[1].send_signal(signal.SIGCONT)
        # The other one learns why its run was given up.
        _, err = ranks.processes[1].communicate(timeout=60)
        assert ranks.processes[1].returncode == RANK_FAILED and err.count("error:") == 1, err


def test_a_stalled_rank_is_named_on_all(bundle_of):
    with Ranks(bundle_of("chunks.mlir"), "--inject-stall", 1, timeout=2) as ranks:
        for code, err in ranks.ends():
            assert code == RANK_FAILED and "rank 1" in err, err


def test_another_program(bundle_of):
    with Ranks(bundle_of("chunks.mlir"), bundles={1: bundle_of("slices.mlir")}) as ranks:
        for code, err in ranks.ends():
            assert code != 0 and "bundle" in err and "rank 1" in err, err


def test_a_missing_rank(bundle_of, monkeypatch):
    for variable, value in {"BRAID_RANK": "0", "BRAID_SIZE": "2", "BRAID_RENDEZVOUS": f"tcp://127.0.0.1:{free_port()}"}.items():
        monkeypatch.setenv(variable, value)
    err = braid_run(bundle_of("chunks.mlir"), *RANDOM, "--time-limit", 2, expect=RANK_FAILED).err
    assert "rank 1 of 2 has not come" in err and "within 2.0 s" in err


def test_what_is_wrong_is_named(bundle_of, agent, monkeypatch):
    bundle = bundle_of("chunks.mlir")
    err = braid_run(bundle, *RANDOM, "--transport", "ucx", expect=BAD_INPUT).err
    assert "transport 'ucx' expects that this process is one of several, which --hosts or a launcher starts" in err
    monkeypatch.setenv("BRAID_SIZE", "3")
    monkeypatch.setenv("BRAID_RANK", "1")
    monkeypatch.setenv("BRAID_RENDEZVOUS", "tcp://127.0.0.1:1")
    err = braid_run(bundle, *RANDOM, expect=BAD_INPUT).err
    assert "has a mesh of 2 ranks, this process is rank 1 of 3" in err
    monkeypatch.setenv("BRAID_SIZE", "2")
    err = braid_run(bundle, *RANDOM, "--transport", "shm", expect=BAD_INPUT).err
    assert "several processes expect --transport ucx, got 'shm'" in err
    err = braid("run", bundle, *RANDOM, "--target", "reference", expect=BAD_INPUT).err
    assert "several processes expect --target cpu, got 'reference'" in err
