# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks on test hosts (test/lab), what can happen to them, and what they must leave behind: nothing."""
import os
import subprocess
import time

from braidtest import BIN

PORT = 4712


def inside(lab, host, command):
    done = lab.run(host, ["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    return done.stdout


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)


def processes(lab, host):
    """Those of Braid, by number; each host numbers its own."""
    found = inside(lab, host, "for p in /proc/[0-9]*; do read -r name < $p/comm && echo ${p#/proc/} $name; done 2>/dev/null; true")
    return [int(line.split()[0]) for line in found.splitlines() if line.split()[1:2] == ["braid-run"]]


def expect_nothing_left(lab, hosts):
    for host in hosts:
        until(lambda host=host: not processes(lab, host))
        assert inside(lab, host, "ls -A /dev/shm $TMPDIR; true").split() == ["/dev/shm:", f"/tmp/braid-lab-{lab.name}/tmp{host}:"]


class Ranks:
    """So many ranks on each host, in processes that end by themselves."""

    def __init__(self, lab, words, limit, repeat=10**9, of_host=1, tool=BIN / "braid-run", variables=()):
        self.lab = lab
        self.count = lab.shape.hosts * of_host
        common = {**os.environ, **dict(variables), "BRAID_SIZE": str(self.count),
                  "BRAID_RENDEZVOUS": f"tcp://{lab.addresses[0]}:{PORT}"}
        command = [tool, *words, "--repeat", repeat, "--time-limit", limit]
        self.processes = [lab.popen(rank // of_host, command, env={**common, "BRAID_RANK": str(rank)},
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(self.count)]

    def await_runs(self):
        """Returns when every rank has sent many messages."""
        def packets(host):
            return int(inside(self.lab, host, "cat /sys/class/net/e0/statistics/tx_packets"))
        def run():
            assert all(process.poll() is None for process in self.processes), [process.communicate(timeout=60) for process in self.processes]
            return all(packets(host) > before[host] + 2000 for host in hosts)
        hosts = range(self.lab.shape.hosts)
        before = [packets(host) for host in hosts]
        until(run)

    def ends(self, ranks, seconds=60):
        """When each of these ends, and what it says then."""
        ended = {}
        end = time.monotonic() + seconds
        while len(ended) < len(ranks):
            assert time.monotonic() < end, f"only {list(ended)} have ended"
            for rank in ranks:
                if rank not in ended and self.processes[rank].poll() is not None:
                    ended[rank] = time.monotonic()
            time.sleep(0.01)
        return {rank: (ended[rank], self.processes[rank].returncode, self.processes[rank].stderr.read()) for rank in ranks}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()


def expect_that_it_runs(lab, words, limit, repeat=3, **options):
    with Ranks(lab, words, repeat=repeat, limit=limit, **options) as ranks:
        said = [process.communicate(timeout=120) for process in ranks.processes]
        assert [process.returncode for process in ranks.processes] == [0] * ranks.count, said
        assert "check y0" in said[0][0] and "passed" in said[0][0]


FAULTS = {
    "killed": lambda lab, host: inside(lab, host, f"kill -9 {processes(lab, host)[0]}"),
    "stopped": lambda lab, host: inside(lab, host, f"kill -STOP {processes(lab, host)[0]}"),
    "down": lambda lab, host: lab.link(host, "down"),
    "mute": lambda lab, host: lab.link(host, "mute"),
    "deaf": lambda lab, host: lab.link(host, "deaf"),
}
