# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Faults across test hosts while a program of three ranks runs over UCX: who is named and when, that nothing is left, and that the
next program runs. Slow links and small packets are no faults."""
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from braidtest import BIN, RANK_FAILED, ROOT, braid
from host_ranks import FAULTS, Ranks, expect_nothing_left, expect_that_it_runs, inside, processes, until

sys.path.insert(0, str(ROOT / "test/lab"))
from lab import Lab, LabUnavailable  # noqa: E402
from peers import collectives  # noqa: E402

LIMIT = 2


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The bundle of all_reduces, and the options that give it values and check its result."""
    made = {}

    def compiled(ranks, elements):
        if (ranks, elements) not in made:
            folder = tmp_path_factory.mktemp("program")
            text, given, expected = collectives("all_reduce", elements, ranks, 1)
            (folder / "program.mlir").write_text(text)
            np.save(folder / "x.npy", given)
            np.save(folder / "y0.npy", expected)
            braid("compile", folder / "program.mlir", "-o", folder / "program.braid")
            made[ranks, elements] = [folder / "program.braid", "--input", f"x0={folder / 'x.npy'}", "--check", folder / "y0.npy"]
        return made[ranks, elements]
    return compiled


@pytest.fixture(scope="module")
def lab():
    try:
        with Lab(hosts=3) as made:
            yield made
    except LabUnavailable as error:
        pytest.skip(f"no test hosts here: {error}")


@pytest.fixture(scope="module")
def allowed(request):
    """Seconds from a fault to the end of a rank: the limit and one more, and what a machine needs that does much else meanwhile."""
    return LIMIT + 1 + (0 if request.config.getoption("--long") else 10)


# The others have limits of seconds, which a machine that runs other tests beside them exceeds: they run alone, with --long.
ALWAYS = [("killed", 1)]


@pytest.mark.parametrize("fault,lost", [
    pytest.param(fault, lost, marks=[] if (fault, lost) in ALWAYS else pytest.mark.long) for fault in FAULTS for lost in (0, 1)])
def test_a_lost_rank_is_named(fault, lost, lab, program, allowed):
    words = program(3, 3 << 10)
    others = [host for host in range(3) if host != lost]
    try:
        with Ranks(lab, words, LIMIT) as ranks:
            ranks.await_runs()
            FAULTS[fault](lab, lost)
            begin = time.monotonic()
            ended = ranks.ends(others)
            if fault == "stopped":
                inside(lab, lost, f"kill -CONT {processes(lab, lost)[0]}")
            for host, (end, code, said) in ended.items():
                print(f"{fault} rank {lost}, rank {host} after {end - begin:.2f} s: {said.strip()}")
                assert code == RANK_FAILED and said.count("error:") == 1, said
                # "ranks 0 (host0) and 1 (host1)", where each waits for the other: neither can know whose messages are lost.
                assert f" {lost} (host{lost})" in said and "all_reduce 'call.0'" in said, said
                assert end - begin < allowed, said
            if fault != "killed":
                assert list(ranks.ends([lost]).values())[0][1] == RANK_FAILED
    finally:
        lab.link(lost, "up")
    expect_nothing_left(lab, range(3))
    expect_that_it_runs(lab, words, limit=30)


@pytest.mark.parametrize("fault,lost", [
    pytest.param(fault, lost, marks=[] if (fault, lost) == ("killed", 2) else pytest.mark.long)
    for fault, lost in [("killed", 2), ("killed", 3), ("stopped", 2), ("stopped", 3), ("down", 2)]])
def test_a_lost_rank_is_named_where_hosts_have_two(fault, lost, lab, program, allowed):
    """Rank 2 tells other hosts what rank 3 says, and the other way about."""
    words = program(6, 3 << 10)
    lost_too = [2, 3] if fault == "down" else [lost]
    others = [rank for rank in range(6) if rank not in lost_too]
    try:
        with Ranks(lab, words, LIMIT, of_host=2) as ranks:
            ranks.await_runs()
            number, = [n for n in processes(lab, 1) if f"BRAID_RANK={lost}\0" in inside(lab, 1, f"cat /proc/{n}/environ")]
            if fault == "down":
                lab.link(1, "down")
            else:
                inside(lab, 1, f"kill -{'KILL' if fault == 'killed' else 'STOP'} {number}")
            begin = time.monotonic()
            ended = ranks.ends(others)
            if fault == "stopped":
                inside(lab, 1, f"kill -CONT {number}")
            for rank, (end, code, said) in ended.items():
                print(f"{fault} rank {lost}, rank {rank} after {end - begin:.2f} s: {said.strip()}")
                assert code == RANK_FAILED and said.count("error:") == 1, said
                assert any(f" {of} (host1)" in said for of in lost_too) and "all_reduce 'call.0'" in said, said
                assert end - begin < allowed, said
            if fault != "killed":
                assert all(code == RANK_FAILED for _, code, _ in ranks.ends(lost_too).values())
    finally:
        lab.link(1, "up")
    expect_nothing_left(lab, range(3))


def test_a_host_without_power_is_named(program):
    words = program(3, 3 << 10)
    with Lab(hosts=3) as lab:
        with Ranks(lab, words, LIMIT) as ranks:
            ranks.await_runs()
            lab.off(1)
            for _, code, said in ranks.ends([0, 2]).values():
                assert code == RANK_FAILED and "rank 1 (host1)" in said and "all_reduce 'call.0'" in said, said
        expect_nothing_left(lab, [0, 2])


@pytest.mark.parametrize("victim", ["launcher", "starter"])
def test_a_killed_launcher_leaves_no_process(victim, lab, program):
    """Neither does one of the processes that it starts on the hosts."""
    words = [BIN / "braid-run", *program(3, 3 << 10), "--repeat", 10**9, "--time-limit", LIMIT, "--hosts", ",".join(lab.addresses),
             "--agent", lab.agent]
    launcher = lab.popen(0, words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        # The starter and the rank, and on the first host the launcher.
        until(lambda: [len(processes(lab, host)) for host in range(3)] == [3, 2, 2])
        before = int(inside(lab, 2, "cat /sys/class/net/e0/statistics/tx_packets"))
        until(lambda: int(inside(lab, 2, "cat /sys/class/net/e0/statistics/tx_packets")) > before + 2000)
        host = 0 if victim == "launcher" else 1
        inside(lab, host, f"kill -9 {min(processes(lab, host))}")
        said = launcher.communicate(timeout=60)
        assert launcher.returncode == (128 + signal.SIGKILL if victim == "launcher" else RANK_FAILED), said
        if victim == "starter":
            assert "10.77.0.2" in said[1] or "rank 1 (host1)" in said[1], said
    finally:
        launcher.kill()
        launcher.wait()
    expect_nothing_left(lab, range(3))


def test_a_slow_link_is_no_stall(program):
    """The collective takes longer than the limit, and its pieces arrive one after another."""
    with Lab(hosts=2, rate="1mbit") as lab:
        begin = time.monotonic()
        expect_that_it_runs(lab, program(2, 1 << 18), limit=6, repeat=1)
        assert time.monotonic() - begin > 6


def test_small_packets(program):
    with Lab(hosts=2, rate="100mbit", mtu=576) as lab:
        expect_that_it_runs(lab, program(2, 1 << 18), limit=10)
