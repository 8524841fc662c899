# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transport shm gives the same results as threads, and leaves nothing behind when a rank or the launcher is killed or
stopped."""
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import time

import numpy as np
import pytest

import braidtest
import models
from braidtest import BAD_INPUT, BIN, RANK_FAILED, braid_run, of_process, of_threads
from test_against_pytorch import check_case

LIMIT = 5


@pytest.fixture(autouse=True)
def no_segment_is_left():
    def segments():
        return {path.name for path in pathlib.Path("/dev/shm").iterdir() if path.name.startswith("braid")}
    before = segments()
    yield
    assert segments() <= before


def children(pid):
    """The child processes of `pid`."""
    return [int(child) for listed in of_threads(pid, "children") for child in listed.split()]


def alive(pid):
    stat = of_process(pid, "stat")
    return stat != "" and stat.rsplit(")", 1)[1].split()[0] != "Z"


def none_left(pids, seconds=60):
    end = time.monotonic() + seconds
    while any(alive(pid) for pid in pids) and time.monotonic() < end:
        time.sleep(0.01)
    return not any(alive(pid) for pid in pids)


@pytest.mark.parametrize("mesh", ["tp=1", "tp=2", "tp=4", "dp=2", "dp=2,tp=2"])
def test_same_answer_as_threads(tiny, tmp_path, mesh):
    ranks = braidtest.ranks_of(mesh)
    for transport in "threads", "shm":
        braid_run(tiny.bundle(mesh), "--ranks", ranks, *tiny.run_args(), "--transport", transport, "--check", tiny.golden,
                  "--output", tmp_path / transport, "--report", tmp_path / f"{transport}.json", "--trace",
                  tmp_path / f"{transport}.trace", "--repeat", 3)
    name = f"{models.OUTPUT}.npy"
    np.testing.assert_array_equal(np.load(tmp_path / "shm" / name), np.load(tmp_path / "threads" / name))
    threads, shm = (json.loads((tmp_path / f"{transport}.json").read_text()) for transport in ("threads", "shm"))
    assert shm["transport"] == "shm" and threads.keys() == shm.keys()
    assert shm["bytes_sent_per_rank"] == threads["bytes_sent_per_rank"]
    spans = [{(event["name"], event["pid"], event["tid"]) for event in json.loads(
        (tmp_path / f"{transport}.trace").read_text())["traceEvents"]} for transport in ("threads", "shm")]
    assert spans[0] == spans[1]


@pytest.mark.parametrize("mesh", ["tp=2", "tp=4", "dp=2,tp=2"])
def test_minilm(minilm_case, tmp_path, mesh):
    check_case(minilm_case, mesh, "cpu", tmp_path / "out", extra=["--transport", "shm"])
    braidtest.braid("run", minilm_case.bundle(mesh), *minilm_case.run_args(), "--transport", "shm", "--check", "reference")


def test_module_compiled_and_run_in_one_go(tiny):
    braidtest.braid("run", tiny.model, "--ranks", 2, *tiny.run_args(), "--transport", "shm", "--check", "reference",
                    "--check", tiny.golden)


def test_stalled_rank(tiny, tmp_path):
    done = braid_run(tiny.bundle("tp=2"), *tiny.run_args(), "--transport", "shm", "--inject-stall", 1, "--time-limit", LIMIT,
                     "--output", tmp_path / "out", expect=RANK_FAILED)
    assert re.search(r"waited [0-9.]+ s for rank 1, which has not arrived", done.err), done
    assert not (tmp_path / "out").exists()


def threads(pid):
    return len(of_threads(pid, "comm"))


def start(case, mesh, limit=LIMIT):
    """Starts a run that does not end, and waits until its ranks are loaded and have their threads."""
    command = [BIN / "braid-run", case.bundle(mesh), *case.run_args(), "--transport", "shm", "--repeat", 10**9, "--time-limit",
               limit]
    launcher = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    ranks = braidtest.ranks_of(mesh)
    end = time.monotonic() + 60
    while len(children(launcher.pid)) < ranks or any(threads(pid) < 2 for pid in children(launcher.pid)):
        assert launcher.poll() is None and time.monotonic() < end, launcher.communicate(timeout=10)
        time.sleep(0.01)
    return launcher, children(launcher.pid)


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP])
@pytest.mark.parametrize("mesh", ["tp=2", "dp=2,tp=2"])
def test_a_rank_is_lost(tiny, mesh, sign):
    seed = int(os.environ.get("BRAID_TEST_SEED", random.randrange(2**32)))
    print("BRAID_TEST_SEED", seed)
    chance = random.Random(seed)
    limit = LIMIT if sign == signal.SIGSTOP else 100
    launcher, pids = start(tiny, mesh, limit)
    time.sleep(chance.random())
    os.kill(chance.choice(pids), sign)
    begin = time.monotonic()
    out, err = launcher.communicate(timeout=120)
    seconds = time.monotonic() - begin
    assert launcher.returncode == RANK_FAILED, err
    if sign == signal.SIGSTOP:
        assert re.search(r"rank \d+.*(has not arrived|waited|no progress|neither begun nor ended)", err), err
        assert seconds < limit + 30
    else:
        # The launcher may still be waiting for ranks to load.
        assert re.search(rf"rank \d+ was ended by signal {int(sign)} \(.*\) (while it was|before its first run)", err), err
        assert seconds < limit / 2, "a rank that ends is noticed at once"
    assert len(err.strip().splitlines()) == 1, err
    assert none_left(pids)


def test_the_launcher_is_lost(tiny):
    launcher, pids = start(tiny, "tp=2")
    launcher.kill()
    launcher.communicate(timeout=60)
    assert none_left(pids)


def test_small_dev_shm(tiny, tmp_path):
    """Ranks share memory without /dev/shm: the test runs in its own mount namespace, where /dev/shm has one page."""
    def within(*command):
        return subprocess.run(["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=4k tmpfs /dev/shm && exec "$@"', "sh",
                               *map(str, command)], capture_output=True, text=True, timeout=120, check=False)
    if (refused := within("true")).returncode != 0:
        pytest.skip(f"no mount namespace here: {refused.stderr.strip()}")
    for transport in "shm", "threads":
        done = within(BIN / "braid-run", tiny.bundle("tp=4"), *tiny.run_args(), "--output", tmp_path / transport, "--transport", transport)
        assert done.returncode == 0, done


def test_unknown_transport(tiny):
    done = braid_run(tiny.bundle("tp=2"), *tiny.run_args(), "--transport", "pigeon", expect=BAD_INPUT)
    assert "expects transport 'threads', 'shm' or 'ucx', got 'pigeon'" in done.err
