# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A rank stops, or loses its link, or its launcher is killed, at each step of each of its threads, from its start over UCX to its
end, on test hosts: the other ranks end in time and name it, nothing is left, and the next program runs.

Steps are the schedule points of the runtime, which a build with sanitizers has; the rank waits there until it is done
(test/lib/pause-at-point). A step is tried the first and the last time that a thread is at it. Ordinary runs take a sample of these
moments, another one with every commit; BRAID_MOMENT_SEED draws others, --long takes all."""
import collections
import concurrent.futures
import contextlib
import dataclasses
import os
import queue
import random
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from braidtest import OK, RANK_FAILED, ROOT, braid
from host_ranks import FAULTS, Ranks, expect_nothing_left, expect_that_it_runs, inside, processes, until

sys.path.insert(0, str(ROOT / "test/lab"))
from lab import Lab, LabUnavailable  # noqa: E402

TOOL = ROOT / "build-asan/bin/braid-run"
HOSTS, RUNS, LIMIT = 3, 3, 4
LABS = 6  # that are used side by side, as most of the time is spent waiting for the limit
# Seconds over the limit that ranks may take to end: one, as everywhere, and what sanitizers need beside other work.
SLACK = 1 + 10
LOSSES, LAUNCHER = ("stopped", "down", "mute", "deaf"), "launcher killed"
# Some rounds say nothing and are tried again. UCX 1.13 aborts a process whose peer ends while they connect; a busy machine may start
# ranks so late that others do not wait for them, or hold this test up until a rank that only pauses is late for the others.
ROUNDS, ABORTED, LONGEST_PAUSE = 6, 128 + signal.SIGABRT, LIMIT / 2
# Leaks are for tests that end as they should: a rank that fails leaves what a lost peer may still use.
ENVIRONMENT = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}

# Something is computed beside the first all_reduce, so its queue has a thread.
PROGRAM = """
comm.mesh @mesh <r = 3>
func.func @main(%x0: T {nn.name = "x0", comm.global_type = tensor<3x3072xf32>, comm.sharding = #comm.sharding<@mesh, [{r}, {}]>})
    -> (T {nn.name = "y0"}) attributes {nn.entry} {
  %sum = comm.all_reduce sum(%x0) over <@mesh, {r}> role "first" : T
  %twice = nn.map %x0, %x0 : T, T -> T {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    nn.yield %c : f32
  }
  comm.send(%sum) pairs [0 -> 1, 1 -> 2, 2 -> 0] over <@mesh, {r}> tag 1 : T
  %got = comm.recv pairs [0 -> 1, 1 -> 2, 2 -> 0] over <@mesh, {r}> tag 1 : T
  %both = nn.map %got, %twice : T, T -> T {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    nn.yield %c : f32
  }
  %y0 = comm.all_reduce sum(%both) over <@mesh, {r}> role "second" : T
  return %y0 : T
}
""".replace("T ", "tensor<1x3072xf32> ").replace("T,", "tensor<1x3072xf32>,").replace("T\n", "tensor<1x3072xf32>\n")


def default_seed():
    done = subprocess.run(["git", "rev-list", "--count", "HEAD"], capture_output=True, text=True, check=False, cwd=ROOT)
    return int(done.stdout) if done.returncode == 0 else 0


SEED = int(os.environ.get("BRAID_MOMENT_SEED", default_seed()))


@dataclasses.dataclass(frozen=True)
class Moment:
    rank: int
    lane: int
    step: str
    times: int  # that the thread has been at the step before

    def __str__(self):
        return f"rank {self.rank}, thread {self.lane}, '{self.step}' after {self.times}"


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """The options of a program with two all_reduces, and a ring of sends between them."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "program.mlir").write_text(PROGRAM)
    np.save(folder / "x.npy", np.repeat(np.arange(1, 4, dtype=np.float32)[:, None], 3072, axis=1))
    np.save(folder / "y0.npy", np.full((1, 3072), 3 * 6 + 2 * 6, np.float32))
    braid("compile", folder / "program.mlir", "-o", folder / "program.braid")
    return [folder / "program.braid", "--input", f"x0={folder / 'x.npy'}", "--check", folder / "y0.npy"]


@pytest.fixture(scope="module")
def labs(request):
    if not TOOL.exists():
        pytest.skip(f"there is no {TOOL.relative_to(ROOT)}, which has schedule points: scripts/build.sh --preset asan braid-run")
    with contextlib.ExitStack() as stack:
        made = queue.Queue()
        try:
            for _ in range(LABS):
                made.put(stack.enter_context(Lab(hosts=HOSTS)))
        except LabUnavailable as error:
            pytest.skip(f"no test hosts here: {error}")
        yield made


@contextlib.contextmanager
def one_of(labs):
    lab = labs.get()
    try:
        yield lab
    finally:
        labs.put(lab)


@pytest.fixture(scope="module")
def moments(labs, words, tmp_path_factory):
    """Of ranks 0 and 1, from a job that nothing disturbs."""
    file = tmp_path_factory.mktemp("points") / "points"
    with one_of(labs) as lab:
        expect_that_it_runs(lab, words, 30, repeat=RUNS, tool=TOOL, variables={**ENVIRONMENT, "BRAID_POINTS_FILE": str(file)})
    found = []
    for rank in 0, 1:
        for line in file.with_name(f"points.{rank}").read_text().splitlines():
            lane, step, count = line.split("|")
            found += [Moment(rank, int(lane), step, times) for times in sorted({0, int(count) - 1})]
    assert len({moment.lane for moment in found}) >= 5 and len(found) > 80, found
    return found


def sample(moments):
    """Of each fault some moments, most of them the first of their kind, when all other ranks need the rank."""
    draw = random.Random(SEED)
    first, last = [moment for moment in moments if not moment.times], [moment for moment in moments if moment.times]
    return [(fault, moment) for fault in [*LOSSES, LAUNCHER] for moment in [*draw.sample(first, 2), *draw.sample(last, 1)]]


def end_all(lab):
    for host in range(HOSTS):
        inside(lab, host, f"kill -9 {' '.join(map(str, processes(lab, host)))} 2>/dev/null; true")


def is_named(lost, text, runs):
    """With its host. Before the first run others may not have learnt the hosts of all."""
    if runs == 0:
        return re.search(rf"ranks? ((\d+( \(host\d\))?(, | and ))*){lost}\b", text)
    return f" {lost} (host{lost})" in text


class Outcomes:
    """Of many moments, by kind, with what must not have happened."""

    def __init__(self):
        self.count = collections.Counter()
        self.slowest = 0.0
        self.wrong = []


def disturb(lab, words, fault, moment, file, outcomes):
    """Does this to the rank at the moment. Returns what made the round say nothing, or None."""
    lost = moment.rank
    others = [rank for rank in range(HOSTS) if rank != lost]
    at = f"{lost}|{moment.lane}|{moment.step}|{moment.times}|{file}"
    variable = "BRAID_STOP_AT" if fault == "stopped" else "BRAID_PAUSE_AT"
    with Ranks(lab, words, LIMIT, repeat=RUNS, tool=TOOL, variables={**ENVIRONMENT, variable: at}) as ranks:
        def has_come():
            return file.exists() or all(process.poll() is not None for process in ranks.processes)
        until(has_come)
        if not file.exists():  # a wait may be over before it begins
            said = ranks.ends(range(HOSTS))
            if any("not come to" in text for _, _, text in said.values()):
                return "the start was slow"
            assert all(code == OK for _, code, _ in said.values()), said
            outcomes.count["never came"] += 1
            return None
        runs = int(file.read_text())
        if fault != "stopped":
            FAULTS[fault](lab, lost)
        is_late = fault != "stopped" and time.time() - file.stat().st_mtime > LONGEST_PAUSE
        file.unlink()
        begin = time.monotonic()
        said = ranks.ends(others)
        if fault == "stopped":
            inside(lab, lost, f"kill -CONT {' '.join(map(str, processes(lab, lost)))}")
        own = ranks.ends([lost])[lost]
        if any(code == ABORTED for _, code, _ in [*said.values(), own]):
            return "UCX aborted"
        if is_late:
            return "the pause was long"
        # Its part of the last run may be done when it has begun that, and later it is needed by rank 0 only, if at all.
        is_needed = runs < RUNS
        for rank, (end, code, text) in said.items():
            outcomes.slowest = max(outcomes.slowest, end - begin)
            assert code == RANK_FAILED or (code == OK and not is_needed), (rank, code, text)
            if code == RANK_FAILED:
                assert text.count("error:") == 1 and is_named(lost, text, runs), (rank, text)
            assert end - begin < LIMIT + SLACK, (rank, end - begin, text)
        # It hears of the others again when it goes on; without a link it has lost them.
        assert own[1] == RANK_FAILED or (own[1] == OK and not is_needed), own
        assert own[2].count("error:") == (own[1] == RANK_FAILED), own
        outcomes.count["named" if any(code == RANK_FAILED for _, code, _ in said.values()) else "not needed"] += 1
    return None


def kill_launcher(lab, words, moment, file, outcomes):
    """Of ranks of which one is at the moment."""
    at = f"{moment.rank}|{moment.lane}|{moment.step}|{moment.times}|{file}"
    command = [TOOL, *words, "--repeat", RUNS, "--time-limit", 30, "--hosts", ",".join(lab.addresses), "--agent", lab.agent]
    launcher = lab.popen(0, command, env={**os.environ, **ENVIRONMENT, "BRAID_PAUSE_AT": at}, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: file.exists() or launcher.poll() is not None)
        if not file.exists():
            said = launcher.communicate(timeout=60)
            assert launcher.returncode == OK, said
            outcomes.count["never came"] += 1
            return
        inside(lab, 0, f"kill -9 {min(processes(lab, 0))}")
        file.unlink()
        said = launcher.communicate(timeout=60)
        assert launcher.returncode == 128 + signal.SIGKILL, said
        outcomes.count[LAUNCHER] += 1
    finally:
        launcher.kill()
        launcher.communicate()


def try_moment(labs, words, fault, moment, file, outcomes):
    with one_of(labs) as lab:
        try:
            for _ in range(ROUNDS):
                trouble = None
                if fault == LAUNCHER:
                    kill_launcher(lab, words, moment, file, outcomes)
                else:
                    trouble = disturb(lab, words, fault, moment, file, outcomes)
                    lab.link(moment.rank, "up")
                expect_nothing_left(lab, range(HOSTS))
                if not trouble:
                    return
                outcomes.count[trouble] += 1
            raise AssertionError(f"{trouble}, and so on in {ROUNDS} rounds")
        except AssertionError as error:
            outcomes.wrong.append(f"{fault} at {moment}: {error}")
            file.unlink(missing_ok=True)
            lab.link(moment.rank, "up")
            end_all(lab)


def try_all(cases, labs, words, folder):
    """Tries each fault at its moment, and then in each lab the program."""
    outcomes = Outcomes()
    with concurrent.futures.ThreadPoolExecutor(LABS) as pool:
        list(pool.map(lambda number: try_moment(labs, words, *cases[number], folder / f"moment{number}", outcomes), range(len(cases))))
    print(f"\nBRAID_MOMENT_SEED={SEED}, {len(cases)} moments: {dict(outcomes.count)}, the last rank after {outcomes.slowest:.1f} s at most")
    assert not outcomes.wrong, "\n\n".join([f"BRAID_MOMENT_SEED={SEED}", *outcomes.wrong])
    for _ in range(LABS):
        with one_of(labs) as lab:
            expect_that_it_runs(lab, words, 30, tool=TOOL, variables=ENVIRONMENT)
    return outcomes.count


@pytest.mark.parametrize("seed", [SEED])
def test_a_sample_of_moments(seed, labs, words, moments, tmp_path):
    cases = sample(moments)
    count = try_all(cases, labs, words, tmp_path)
    assert count["named"] >= len(LOSSES) and count[LAUNCHER] > 0, count


@pytest.mark.long
@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("fault", LOSSES)
def test_the_rank_is_named_at_every_moment(fault, rank, labs, words, moments, tmp_path):
    cases = [(fault, moment) for moment in moments if moment.rank == rank]
    count = try_all(cases, labs, words, tmp_path)
    assert count["named"] >= len(cases) // 3, count


@pytest.mark.long
@pytest.mark.parametrize("rank", [0, 1])
def test_a_launcher_killed_at_every_moment_leaves_no_process(rank, labs, words, moments, tmp_path):
    cases = [(LAUNCHER, moment) for moment in moments if moment.rank == rank]
    count = try_all(cases, labs, words, tmp_path)
    assert count[LAUNCHER] >= len(cases) // 2, count
