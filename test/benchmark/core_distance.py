# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keeps benchmarks to times when cores are as near to each other as usual: the host of a virtual machine moves them, and where they
share no cache collectives take longer, while both together read memory faster. Needs build/bin/BraidCoreDistance
(ninja -C build BraidCoreDistance)."""
import json
import os
import pathlib
import subprocess
import sys
import time

TOOL = pathlib.Path(__file__).resolve().parents[2] / "build" / "bin" / "BraidCoreDistance"


def distance(ranks, *usual_and_most):
    """{"core_to_core_seconds", "is_usual"}, once cores are as near as usual, or after so many seconds."""
    try:
        done = subprocess.run([str(word) for word in (TOOL, ranks, *usual_and_most)], stdout=subprocess.PIPE, text=True, check=True)
    except FileNotFoundError:
        sys.exit(f"error: there is no {TOOL}; make it: ninja -C {TOOL.parents[1]} {TOOL.name}")
    return json.loads(done.stdout)


class Usual:
    """Of this run: the least of ten measurements within a second."""

    def __init__(self, ranks):
        self.ranks = min(ranks, len(os.sched_getaffinity(0)))
        self.elsewhere = 0
        if self.ranks > 1:
            found = []
            for _ in range(10):
                found.append(distance(self.ranks)["core_to_core_seconds"])
                time.sleep(0.1)
            self.seconds = min(found)

    def measure(self, function):
        """What the function returns, called again, up to five times in all, while cores are not as near as usual before and behind it."""
        for _ in range(5):
            if self.ranks > 1:
                distance(self.ranks, self.seconds, 10)
            result = function()
            if self.ranks < 2 or distance(self.ranks, self.seconds, 0)["is_usual"]:
                return result
        self.elsewhere += 1
        return result
