# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks that are processes of their own and talk over UCX: on this host and on test hosts, started by every launcher that is here,
with the results of ranks that are threads, bit by bit."""
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from braidtest import BAD_INPUT, BIN, RANK_FAILED, ROOT, braid, braid_run, of_threads

# Every kind of collective and of placing, and how many ranks each has.
PROGRAMS = {"chunks.mlir": 2, "slices.mlir": 2, "hierarchical.mlir": 4, "between.mlir": 2, "accumulate.mlir": 2, "context.mlir": 2,
            "ring.py 3 --both-ways": 3, "weights.py 4": 2, "pipeline.py 2 4 --tp 2": 4}
RANDOM = ["--random-weights", 3, "--random-inputs", 1]


pytestmark = pytest.mark.usefixtures("ucx")


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
        # Of all ranks, though a process has memory and commands of its own rank only.
        assert [rank["rank"] for rank in report["per_rank"]] == [0, 1]


@pytest.mark.parametrize("name, counts", [("chunks.mlir", (1, 1)), ("hierarchical.mlir", (2, 2)), ("pipeline.py 2 4 --tp 2", (1, 3))])
def test_two_hosts(name, counts, bundle_of, two_hosts, tmp_path):
    lab = two_hosts
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
    """A port that is free together with the next one, which torchrun's ranks meet at. It is none of those that a system gives to
    clients, which other tests may get meanwhile."""
    first_of_clients = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for _ in range(100):
        port = random.randrange(10000, first_of_clients - 1)
        with socket.socket() as one, socket.socket() as next_one:
            try:
                one.bind(("127.0.0.1", port))
                next_one.bind(("127.0.0.1", port + 1))
                return port
            except OSError:
                pass
    raise RuntimeError("no free port is found")


class Ranks:
    """Ranks that this test starts itself."""

    def __init__(self, bundle, *words, bundles=None, own=None, random=RANDOM, timeout=5, variables=lambda rank: {}, count=2):
        """`variables` of a rank come before those that are set here. `own`: options by rank."""
        port = free_port()
        self.processes = []
        for rank in range(count):
            environment = {**os.environ, "BRAID_RANK": str(rank), "BRAID_SIZE": "2", "BRAID_RENDEZVOUS": f"tcp://127.0.0.1:{port}",
                           **variables(rank)}
            command = [BIN / "braid-run", (bundles or {}).get(rank, bundle), *random, "--time-limit", timeout, *words,
                       *(own or {}).get(rank, ())]
            self.processes.append(subprocess.Popen([str(word) for word in command], env=environment, stdout=subprocess.PIPE,
                                                   stderr=subprocess.PIPE, text=True))

    def run(self):
        """Returns when both are in their runs, in which their threads wait for each other all the time."""
        def waits(process):
            return sum(int(times) for status in of_threads(process.pid, "status")
                       for times in re.findall(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.MULTILINE))
        end = time.monotonic() + 60
        while any(process.poll() is None and waits(process) < 10000 for process in self.processes):
            assert time.monotonic() < end, "the ranks do not run"
            time.sleep(0.01)
        assert all(process.poll() is None for process in self.processes), self.ends()

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
        ranks.run()
        ranks.processes[lost].kill()
        begin = time.monotonic()
        code, err = ranks.ends()[1 - lost]
        assert code == RANK_FAILED and f"rank {lost}" in err, err
        assert err.count("error:") == 1, err
        assert time.monotonic() - begin < 6 + 10  # the limit and a second, on a machine that does much else


def test_a_stopped_rank_is_named(bundle_of):
    with Ranks(bundle_of("chunks.mlir"), "--repeat", 10**9, timeout=3) as ranks:
        ranks.run()
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


def test_another_kernel(bundle_of, tmp_path):
    # The same program of other kernels: nothing but a constant of theirs differs.
    text = (ROOT / "examples/write-your-own/model.mlir").read_text()
    bundles = {}
    for rank, epsilon in enumerate(("1.0e-5", "1.0e-2")):
        (tmp_path / f"{rank}.mlir").write_text(text.replace("1.0e-5", epsilon, 1))
        bundles[rank] = tmp_path / f"{rank}.braid"
        braid("compile", tmp_path / f"{rank}.mlir", "--mesh", "tp=2", "-o", bundles[rank])
    with Ranks(bundles[0], bundles=bundles) as ranks:
        one_error(ranks.ends(), r"rank 1 \(host '.*', process \d+\) has the bundle with SHA-256 \w+, rank 0 has \w+")


@pytest.mark.parametrize("option, value, said", [
    ("--repeat", 3, "rank 1 has --repeat 3, rank 0 has --repeat 1"),
    ("--warmup", 1, "rank 1 has --warmup 1, rank 0 has --warmup 0"),
    ("--output", "y", "rank 1 has --output, rank 0 has no --output"),
    ("--trace", "t.json", "rank 1 has --trace, rank 0 has no --trace"),
    ("--report", "r.json", "rank 1 has --report, rank 0 has no --report")])
def test_other_options(option, value, said, bundle_of, tmp_path):
    """What ranks exchange depends on options: they do not wait for each other until the limit, and nothing is left out silently."""
    begin = time.monotonic()
    own = {1: [option, tmp_path / value if isinstance(value, str) else value]}
    with Ranks(bundle_of("chunks.mlir"), own=own, timeout=30) as ranks:
        one_error(ranks.ends(), f"{said}: expects the same options on all ranks", (BAD_INPUT, BAD_INPUT))
    assert time.monotonic() - begin < 20
    assert not list(tmp_path.iterdir())


def test_values_that_differ_are_told_at_once(tmp_path):
    """Ranks that were given other inputs than each other, for a result that all have."""
    bundle = tmp_path / "model.braid"
    braid("compile", ROOT / "examples/write-your-own/model.mlir", "--mesh", "tp=2", "-o", bundle)
    begin = time.monotonic()
    with Ranks(bundle, own={rank: ["--random-inputs", rank + 1, "--output", tmp_path / "out"] for rank in range(2)}, random=RANDOM[:2],
               timeout=30) as ranks:
        one_error(ranks.ends(), "output 'y' expects equal values on ranks 0 and 1, which differ")
    assert time.monotonic() - begin < 20


def test_machine_files(bundle_of, tmp_path):
    """Processes choose the schedules of collectives by one machine file, or do not start."""
    caches = [tmp_path / str(rank) for rank in range(2)]
    for cache in caches:
        cache.mkdir()
    braid("calibrate", "--quick", "--max-load", 1000, "--transports", "shm", "-o", caches[0] / "machine.json")
    machine = json.loads((caches[0] / "machine.json").read_text())
    bundle = bundle_of("chunks.mlir")

    def ranks(*words):
        return Ranks(bundle, "--machine", "host", *words, timeout=30, variables=lambda rank: {"BRAID_CACHE_DIR": str(caches[rank])})

    (caches[1] / "machine.json").write_text(json.dumps(machine))
    braid_run(bundle, *RANDOM, "--output", tmp_path / "threads")
    with ranks("--output", tmp_path / "processes", "--report", tmp_path / "report.json") as both:
        assert [code for code, _ in both.ends()] == [0, 0]
    assert results(tmp_path / "processes") == results(tmp_path / "threads")
    for collective in json.loads((tmp_path / "report.json").read_text())["collectives"]:
        assert collective["considered"][0]["predicted_s"] <= collective["rule_predicted_s"], collective

    (caches[1] / "machine.json").write_text(json.dumps({**machine, "name": "another"}))
    with ranks() as both:
        one_error(both.ends(), r"rank 1 \(host '.*', process \d+\) chooses collectives by the machine file with SHA-256 \w+, "
                               r"rank 0 by the machine file with SHA-256 \w+: expects one file on all hosts")


def test_a_secret_in_a_file(bundle_of, tmp_path):
    bundle = bundle_of("chunks.mlir")
    files = [tmp_path / "secret0", tmp_path / "secret1"]
    for file in files:
        file.write_text("a secret that nobody knows\n")
        file.chmod(0o600)

    def variables(rank):
        return {"BRAID_JOB_SECRET_FILE": str(files[rank])}
    with Ranks(bundle, variables=variables, timeout=30) as ranks:
        assert [code for code, _ in ranks.ends()] == [0, 0]
    # It is the same secret as one in the environment.
    with Ranks(bundle, variables=lambda rank: variables(0) if rank == 0 else {"BRAID_JOB_SECRET": "a secret that nobody knows"},
               timeout=30) as ranks:
        assert [code for code, _ in ranks.ends()] == [0, 0]
    files[1].write_text("a secret of another job")
    with Ranks(bundle, variables=variables, timeout=3) as ranks:
        (first, told), (second, refused) = ranks.ends()
    assert first == second == RANK_FAILED and "rank 1 and rank 0 at" in refused and "have different job secrets" in refused
    assert "rank 1 of 2 has not come" in told and "has another job secret" in told
    for mode in (0o640, 0o604, 0o620):
        files[0].chmod(mode)
        with Ranks(bundle, variables=lambda _: variables(0)) as ranks:
            for code, err in ranks.ends():
                assert code == BAD_INPUT
                assert f"the file of the job secret '{files[0]}' expects to be a file that only its owner can use (chmod 600)" in err
    with Ranks(bundle, variables=lambda _: {"BRAID_JOB_SECRET_FILE": "/no/secret"}) as ranks:
        for code, err in ranks.ends():
            assert code == BAD_INPUT and "cannot open the file of the job secret '/no/secret': No such file" in err
    with Ranks(bundle, variables=lambda _: {**variables(1), "BRAID_JOB_SECRET": "a secret of this job"}) as ranks:
        for code, err in ranks.ends():
            assert code == BAD_INPUT and "variables BRAID_JOB_SECRET and BRAID_JOB_SECRET_FILE are both set, expects one of them" in err


def one_error(said, message, codes=(RANK_FAILED, RANK_FAILED)):
    """Each process ends by itself with a message of one line."""
    for (code, err), expected in zip(said, codes):
        assert code == expected and err.count("error:") == 1 and len(err.strip().splitlines()) == 1, (code, err)
        assert re.search(message, err), err


def test_another_mesh(bundle_of, tmp_path):
    # The same two ranks, named otherwise, of a program that is another one, too: which is what is compared first.
    text = (ROOT / "examples/programs/chunks.mlir").read_text()
    assert "{tp}" in text
    (tmp_path / "other.mlir").write_text(re.sub(r"\btp\b", "sp", text))
    braid("compile", tmp_path / "other.mlir", "-o", tmp_path / "other.braid")
    with Ranks(bundle_of("chunks.mlir"), bundles={1: tmp_path / "other.braid"}) as ranks:
        one_error(ranks.ends(), r"rank 1 \(host '.*', process \d+\) has the (bundle with SHA-256|mesh) .*, rank 0 has ")


def test_a_rank_twice(bundle_of):
    with Ranks(bundle_of("hierarchical.mlir"), variables=lambda rank: {"BRAID_SIZE": "4", "BRAID_RANK": str((0, 1, 1)[rank])},
               count=3) as ranks:
        one_error(ranks.ends(), "two processes are rank 1: process \\d+ of host '.*' and process \\d+ of host '.*'", [RANK_FAILED] * 3)


def test_a_port_that_is_taken(bundle_of):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        place = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        with Ranks(bundle_of("chunks.mlir"), variables=lambda _: {"BRAID_RENDEZVOUS": place}, timeout=3) as ranks:
            (first, told), (second, other) = ranks.ends()
    assert first == second == RANK_FAILED
    assert f"rank 0 cannot listen at {place}: the port is taken by another program" in told
    assert f"rank 1 cannot reach rank 0 at {place} within 3.0 s: " in other, other


def test_a_name_that_does_not_resolve(bundle_of):
    with Ranks(bundle_of("chunks.mlir"), variables=lambda _: {"BRAID_RENDEZVOUS": "tcp://no-such-host.invalid:4711"}) as ranks:
        one_error(ranks.ends(), "cannot (listen|reach rank 0) at tcp://no-such-host.invalid:4711: cannot resolve 'no-such-host.invalid': ",
                  (BAD_INPUT, RANK_FAILED))


def test_a_name_with_ipv6_only(bundle_of, two_hosts):
    command = [BIN / "braid-run", bundle_of("chunks.mlir"), *RANDOM, "--time-limit", 5]
    for rank, expected in enumerate((BAD_INPUT, RANK_FAILED)):
        environment = {**os.environ, "BRAID_RANK": str(rank), "BRAID_SIZE": "2", "BRAID_RENDEZVOUS": "tcp://host0-6:4711"}
        done = two_hosts.run(rank, [str(word) for word in command], env=environment, capture_output=True, text=True, timeout=60)
        one_error([(done.returncode, done.stderr)], "at tcp://host0-6:4711: 'host0-6' has IPv6 addresses only, and ranks meet over IPv4",
                  [expected])


def test_strangers_on_the_port(bundle_of, tmp_path):
    """Garbage, silence and bytes that come slowly, before and while the ranks run."""
    bundle, strangers, ends = bundle_of("chunks.mlir"), [], threading.Event()
    braid_run(bundle, *RANDOM, "--output", tmp_path / "threads")
    port = free_port()

    def disturb():
        sent = 0
        while not ends.is_set():
            if len(strangers) < 40:
                with contextlib.suppress(OSError):
                    strangers.append(socket.create_connection(("127.0.0.1", port), timeout=1))
                    # Also what announces less than it sends, as a number of 4 or 8 bytes.
                    short = (b"\0" * 300, b"d" + b"\0" * 7 + b"a" * 200, b"\xff" * 4096, b"d\0\0\0" + b"a" * 300, b"")
                    strangers[-1].sendall(os.urandom(len(strangers) ** 2) if len(strangers) % 2 else
                                          short[len(strangers) // 2 % len(short)])
            for stranger in strangers[::3]:
                with contextlib.suppress(OSError):
                    sent += stranger.send(b"x")
            ends.wait(0.01)
    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        with Ranks(bundle, "--repeat", 200, "--output", tmp_path / "processes", timeout=30,
                   variables=lambda _: {"BRAID_RENDEZVOUS": f"tcp://127.0.0.1:{port}"}) as ranks:
            assert [code for code, _ in ranks.ends(timeout=120)] == [0, 0]
    finally:
        ends.set()
        thread.join()
        for stranger in strangers:
            stranger.close()
    assert results(tmp_path / "processes") == results(tmp_path / "threads")


def test_a_missing_rank(bundle_of, monkeypatch):
    for variable, value in {"BRAID_RANK": "0", "BRAID_SIZE": "2", "BRAID_RENDEZVOUS": f"tcp://127.0.0.1:{free_port()}"}.items():
        monkeypatch.setenv(variable, value)
    err = braid_run(bundle_of("chunks.mlir"), *RANDOM, "--time-limit", 2, expect=RANK_FAILED).err
    assert "rank 1 of 2 has not come" in err and "within 2.0 s" in err


def test_networks_that_ucx_has_not(bundle_of, monkeypatch):
    monkeypatch.setenv("UCX_TLS", "pigeon")
    err = braid_run(bundle_of("chunks.mlir"), *RANDOM, "--hosts", "localhost:2", "--time-limit", 5, expect=RANK_FAILED).err
    assert "UCX cannot use this host's networks (UCX_TLS 'pigeon'): " in err
    monkeypatch.delenv("UCX_TLS")
    monkeypatch.setenv("UCX_NET_DEVICES", "eth99")
    err = braid_run(bundle_of("chunks.mlir"), *RANDOM, "--hosts", "localhost:2", "--time-limit", 5, expect=RANK_FAILED).err
    assert "UCX finds no network of this host to use (UCX_NET_DEVICES 'eth99')" in err


def test_links_of_one_host(agent, tmp_path):
    done = braid("calibrate", "--links", "--quick", "--hosts", "localhost:2", "--agent", agent, "-o", tmp_path / "machine.json",
                 expect=BAD_INPUT)
    assert re.search("expects one process on each host: ranks 0 and 1 are both on host '.*'", done.err), done
    assert not (tmp_path / "machine.json").exists()


def test_what_is_wrong_is_named(bundle_of, agent, monkeypatch):
    bundle = bundle_of("chunks.mlir")
    err = braid_run(bundle, *RANDOM, "--transport", "ucx", expect=BAD_INPUT).err
    assert "transport 'ucx' expects that this process is one of several, which --hosts or a launcher starts" in err
    err = braid_run(bundle, *RANDOM, "--inputs-from", 1, expect=BAD_INPUT).err
    assert "--inputs-from: expects 0, the only rank that can give them, got 1" in err
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
