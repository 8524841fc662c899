# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The backend of torch.distributed (python/braid_c10d): results, faults, and training beside Gloo."""
import ctypes
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

import numpy as np
import pytest

import c10d_cases
import c10d_ranks
import models
from braidtest import BUILD, ROOT

PACKAGE = BUILD / "lib/python"


def why_not():
    if not models.have_torch():
        return "PyTorch's CPU build is not here"
    if not list((PACKAGE / "braid_c10d").glob("_braid_c10d*.so")):
        return "braid_c10d is not built (see what scripts/build.sh says in build/configure.log)"
    try:
        ctypes.CDLL("libucp.so.0")
    except OSError as error:
        return f"UCX is not here: {error}"
    return ""


pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "none")
HOST = r"rank {} \([^)]+\)"


@pytest.fixture(scope="module")
def ranks_of():
    return c10d_ranks.start_server(PACKAGE)


def rank(number):
    return HOST.format(number)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_reductions(ranks_of, ranks):
    counts = c10d_ranks.run(ranks_of, "reductions", ranks, within=120)
    # 4 floating types of 5 operations and 4 integers of 7.
    assert counts == [4 * len(c10d_cases.SIZES) * (4 * 5 + 4 * 7)] * ranks


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_copies(ranks_of, ranks):
    counts = c10d_ranks.run(ranks_of, "copies", ranks, within=120)
    assert counts == [9 * len(c10d_cases.SIZES) * len(c10d_cases.COPIED)] * ranks


@pytest.mark.parametrize("case, ranks", [("shapes", 3), ("coalesced", 3), ("asynchronous", 4), ("tags", 3), ("groups", 4), ("ahead", 2),
                                         ("refusals", 2), ("last_words", 2)])
def test_case(ranks_of, case, ranks):
    c10d_ranks.run(ranks_of, case, ranks)


def test_again(ranks_of):
    c10d_ranks.run(ranks_of, "again", 2, "PATH")


def test_dropped_in_a_callback(ranks_of):
    c10d_ranks.run(ranks_of, "dropped", 2, "PATH")


@pytest.mark.parametrize("ranks", [2, 4])
def test_gloo_gives_the_same(ranks_of, ranks):
    different = c10d_ranks.run(ranks_of, "gloo_results", ranks)
    # Of four ranks Gloo adds in another order.
    assert ranks > 2 or different == [0, 0]


def test_over_tcp(ranks_of):
    """As between hosts."""
    environment = {"UCX_TLS": "tcp"}
    c10d_ranks.run(ranks_of, "asynchronous", 3, environment=environment)
    c10d_ranks.run(ranks_of, "shapes", 2, environment=environment)


# ---- Faults: all ranks say which rank, and end soon.

def failures(ranks_of, case, ranks, limit=30, **options):
    return c10d_ranks.run(ranks_of, case, ranks, limit=limit, **options)


@pytest.fixture(params=["one host", "links of tcp"])
def differences(request, ranks_of):
    """What ranks say that call different collectives, by case and number of ranks: on one host, and over links as between hosts."""
    environment = {} if request.param == "one host" else {"UCX_TLS": "tcp"}
    return lambda case, ranks: failures(ranks_of, case, ranks, environment=environment)


def test_sizes_differ(differences):
    for (text, seconds), (later, _) in differences("sizes_differ", 2):
        assert re.search(f"collective 1 of the group '.*': {rank('[01]')} runs all_reduce \\(sum, [89] f32\\), {rank('[01]')} runs "
                         r"all_reduce \(sum, [89] f32\)", text), text
        assert "8 f32" in text and "9 f32" in text
        assert seconds < 5 and later != "none"


def test_types_differ(differences):
    for text, seconds in differences("types_differ", 2):
        assert "all_gather (2 i32)" in text and "all_gather (2 f32)" in text, text
        assert seconds < 5


def test_orders_differ(differences):
    for text, seconds in differences("orders_differ", 3):
        assert "all_reduce (sum, 8 f32)" in text and "broadcast (from 0, 8 f32)" in text, text
        assert re.search(rank("[012]"), text) and seconds < 5


def test_roots_differ(differences):
    for text, seconds in differences("roots_differ", 2):
        assert re.search(f"{rank('[01]')} and {rank('[01]')} ran different collectives among the first 128|broadcast.*broadcast", text), text
        assert seconds < 10


def test_splits_differ(differences):
    texts = [text for text, _ in differences("splits_differ", 2)]
    assert re.search(f"all_to_all \\(f32\\), collective 1 of the group '.*': {rank(1)} sent 8 bytes where rank 0 expects 12", texts[0]), texts
    assert re.search(f"{rank(0)} has ended the group", texts[1]), texts


def test_message_sizes_differ(differences):
    sender, receiver = differences("message_sizes_differ", 2)
    assert re.search(f"recv \\(16 bytes, tag 2\\) from {rank(0)} in the group '.*': {rank(0)} sent 12 bytes where rank 1 expects 16",
                     receiver[0]), receiver


def test_time_limit(ranks_of):
    (text, seconds), (late, _) = failures(ranks_of, "one_waits", 2, limit=2)
    assert re.search(f"all_reduce \\(sum, 8 f32\\), collective 1 of the group '.*': {rank(0)} has waited 2.\\d s for {rank(1)}, which has "
                     "ended 0 collectives and runs none", text), text
    assert 2 <= seconds < 4
    assert re.search(f"{rank(0)} has ended the group .*has waited 2.\\d s for {rank(1)}", late), late


def test_time_limit_of_a_receive(ranks_of):
    (text, seconds), _ = failures(ranks_of, "one_receives", 2, limit=2)
    assert re.search(f"recv \\(32 bytes, tag 4\\) from {rank(1)} in the group '.*': {rank(0)} has waited 2.\\d s for {rank(1)}", text), text
    assert 2 <= seconds < 4


def test_wait_with_a_limit(ranks_of):
    assert "100 ms for all_reduce (sum, 4 f32), which goes on" in c10d_ranks.run(ranks_of, "one_wait_times_out", 2)[0]


def test_rank_leaves(ranks_of):
    for text, seconds in failures(ranks_of, "one_leaves", 3)[::2]:
        assert re.search(f"{rank(1)}.* has left the group", text), text
        assert seconds < 5


@pytest.mark.parametrize("transports", ["", "all", "tcp"])
@pytest.mark.parametrize("case", ["one_dies", "one_dies_amid"])
def test_rank_dies(ranks_of, case, transports):
    """Without a list of transports, ranks of the host share memory."""
    results = failures(ranks_of, case, 3, lost=[1], environment={"UCX_TLS": transports} if transports else {})
    for result in results[::2]:
        for text, seconds in result if case == "one_dies" else [result]:
            assert re.search(f"the connection to {rank(1)} is lost", text), text
            assert seconds < 10


def test_rank_stops(ranks_of):
    (text, seconds), _ = failures(ranks_of, "one_stops", 2, limit=3, lost=[1])
    assert re.search(f"{rank(0)} has waited 3.\\d s for {rank(1)}, which does not answer", text), text
    assert seconds < 5


def test_abort(ranks_of):
    for text, seconds in failures(ranks_of, "aborts", 2):
        assert re.search(f"{rank(1)} has aborted it", text) and seconds < 5, text


def test_rank_does_not_come(ranks_of):
    results = c10d_ranks.outcomes(ranks_of, "secrets", 2, limit=2, of_rank={1: {"UCX_TLS": "nothing"}})
    assert "these ranks of 2 have not come to the store within 2000 ms: 1" in results[0][1], results
    assert "UCX cannot use this host's networks" in results[1][1], results


def test_secret(ranks_of):
    secret = {"BRAID_JOB_SECRET": "a secret of the job"}
    assert c10d_ranks.run(ranks_of, "secrets", 2, environment=secret) == [2, 2]
    results = c10d_ranks.outcomes(ranks_of, "secrets", 2, limit=3, environment=secret, of_rank={1: {"BRAID_JOB_SECRET": "quite another one"}})
    for other, result in zip((1, 0), results):
        assert f"the introduction of rank {other} of the group" in result[1] and "is not of a process with this job's secret" in result[1]
    short = c10d_ranks.outcomes(ranks_of, "secrets", 1, environment={"BRAID_JOB_SECRET": "short"})
    assert "BRAID_JOB_SECRET: a job secret expects 16 to 4096 bytes, got 5" in short[0][1]


# ---- Training

@pytest.mark.parametrize("ranks", [2, 4])
def test_training(ranks_of, ranks):
    """With two ranks, losses and parameters have the bits that Gloo gives; with four, sums are in another order."""
    ours, theirs = (c10d_ranks.run(ranks_of, "train", ranks, backend=backend) for backend in ("braid", "gloo"))
    assert ours[0][0][-1] < 0.8 * ours[0][0][0], ours[0][0]
    assert all(result == ours[0] for result in ours)
    if ranks == 2:
        assert ours == theirs
    else:
        np.testing.assert_allclose(ours[0][0], theirs[0][0], rtol=1e-5)
        np.testing.assert_allclose(*(np.frombuffer(result[0][1], np.float32) for result in (ours, theirs)), rtol=1e-3, atol=1e-5)


def test_secret_in_a_file(ranks_of, tmp_path):
    file = tmp_path / "secret"
    file.write_text("a secret of the job\n")
    file.chmod(0o600)
    assert c10d_ranks.run(ranks_of, "secrets", 2, environment={"BRAID_JOB_SECRET_FILE": str(file)}) == [2, 2]
    file.chmod(0o644)
    result, = c10d_ranks.outcomes(ranks_of, "secrets", 1, environment={"BRAID_JOB_SECRET_FILE": str(file)})
    assert "expects to be a file that only its owner can use" in result[1]


@pytest.mark.long
def test_example():
    """The script of torchrun prints the same losses with Braid and with Gloo, which run.sh compares."""
    done = subprocess.run([ROOT / "examples/c10d/run.sh", "--steps", "5"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    losses = [float(loss) for loss in re.findall(r"^step \d+: loss (\S+)$", done.stdout, re.MULTILINE)]
    assert len(losses) == 10 and losses[:5] == losses[5:] and losses[4] < losses[0], done.stdout
    assert done.stdout.endswith("the losses are the same\n")


@pytest.mark.long
@pytest.mark.parametrize("taken_as, least", [("gloo", 75), ("mpi", 9)])
def test_of_pytorch(tmp_path, taken_as, least):
    """PyTorch's own tests of a backend (c10d_pytorch_suite.py says which, and why others are left out)."""
    if importlib.util.find_spec("expecttest") is None:
        pytest.skip("PyTorch's tests need expecttest: build/venv/bin/python -m pip install -r test/Integration/requirements-pytorch-suite.txt")
    results = tmp_path / "results.xml"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "BRAID_SUITE_AS": taken_as, "OMP_NUM_THREADS": "1"}
    folder = pathlib.Path(__file__).parent
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-W", "ignore", "-p", "no:cacheprovider", "--junit-xml", results,
                           folder / "c10d_pytorch_suite.py"], capture_output=True, text=True, timeout=1200, env=environment, cwd=folder)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    suite = xml.etree.ElementTree.parse(results).getroot().find("testsuite")
    assert int(suite.get("tests")) - int(suite.get("skipped")) >= least, done.stdout[-2000:]
