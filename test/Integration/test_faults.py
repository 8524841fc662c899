# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""If a rank stalls, the run ends within the time limit, with a message that names the operation and the rank."""
import re

import pytest

import braidtest
from braidtest import BAD_INPUT, RANK_FAILED, braid_run


@pytest.mark.parametrize("mesh,rank", [("tp=2", 0), ("tp=2", 1), ("tp=4", 3), ("dp=2,tp=2", 2)])
def test_stalled_rank(minilm_case, tmp_path, mesh, rank):
    ranks = braidtest.ranks_of(mesh)
    bundle = minilm_case.bundle(mesh)
    usual = braid_run(bundle, "--ranks", ranks, *minilm_case.run_args())
    limit = 2
    done = braid_run(bundle, "--ranks", ranks, *minilm_case.run_args(), "--inject-stall", rank, "--time-limit", limit,
                     "--output", tmp_path / "out", expect=RANK_FAILED, timeout=usual.seconds + 60)
    # The time for loading is not limited; the limit is on the time without progress.
    assert done.seconds < usual.seconds + limit + 30, f"took too long{done}"
    assert re.search(rf"\brank {rank}\b", done.err), f"expects the stalled rank to be named{done}"
    assert re.search(r"all_reduce", done.err), f"expects the operation that was waited for to be named{done}"
    assert not list((tmp_path / "out").glob("*")) if (tmp_path / "out").exists() else True, f"left results behind{done}"


def test_a_time_limit_does_not_disturb_a_healthy_run(minilm_case):
    braid_run(minilm_case.bundle("tp=2"), "--ranks", 2, *minilm_case.run_args(), "--time-limit", 5, "--check", minilm_case.golden)


def test_stalling_a_rank_that_does_not_exist(tiny):
    done = braid_run(tiny.bundle("tp=2"), "--ranks", 2, *tiny.run_args(), "--inject-stall", 7, "--time-limit", 2, expect=BAD_INPUT)
    assert "7" in done.err
