# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the table compares: each runner runs cases of collectives, either with a rank on each host of a lab, or with
several ranks on this host. To add one, write a class like these and add it to RUNNERS."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PORT = 29411


class PeerFailed(Exception):
    pass


class Runner:
    """`words` of a case: OPERATION:BYTES:REPEAT."""
    name, short = "", ""

    def unavailable(self):
        """Why it cannot run here, or None."""
        raise NotImplementedError

    def on_hosts(self, lab, words, limit):
        """The lines that the ranks printed, one rank a host."""
        raise NotImplementedError

    def on_this_host(self, ranks, words, limit):
        raise NotImplementedError


def wait(processes, limit, what):
    outputs = []
    try:
        for process in processes:
            out, err = process.communicate(timeout=limit)
            if process.returncode != 0:
                raise PeerFailed(f"{what} ended with status {process.returncode}: {err.strip()[-500:]}")
            outputs += out.splitlines()
    except subprocess.TimeoutExpired:
        raise PeerFailed(f"{what} did not end within {limit:.0f} s") from None
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.communicate()
    return outputs


PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


class Gloo(Runner):
    name, short = "PyTorch + Gloo", "gloo"

    def unavailable(self):
        done = subprocess.run([sys.executable, "-c", "import torch.distributed as d; assert d.is_gloo_available()"],
                              capture_output=True, text=True, check=False)
        return None if done.returncode == 0 else f"{sys.executable} has no PyTorch with Gloo"

    def command(self, words):
        return [sys.executable, str(HERE / "gloo_rank.py"), *words]

    def variables(self, rank, ranks, address, interface):
        return dict(os.environ, RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR=address, MASTER_PORT=str(PORT),
                    GLOO_SOCKET_IFNAME=interface, OMP_NUM_THREADS="1")

    def on_hosts(self, lab, words, limit):
        count = lab.shape.hosts
        return wait([lab.popen(host, self.command(words), env=self.variables(host, count, lab.addresses[0], "e0"), **PIPES)
                     for host in range(count)], limit, self.name)

    def on_this_host(self, ranks, words, limit):
        return wait([subprocess.Popen(self.command(words), env=self.variables(rank, ranks, "127.0.0.1", "lo"), **PIPES)
                     for rank in range(ranks)], limit, self.name)


class OpenMpi(Runner):
    name, short = "Open MPI", "openmpi"
    mpirun = ["mpirun", "--allow-run-as-root", "--bind-to", "none", "--mca", "pml", "ob1"]

    def __init__(self):
        self.folder = HERE.parents[1] / "build" / "test-lab"

    def unavailable(self):
        for tool in "mpirun", "mpicc":
            if not shutil.which(tool):
                return f"there is no {tool} here (packages openmpi-bin, libopenmpi-dev)"
        version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
        return None if "Open MPI" in version else "mpirun is not Open MPI's"

    def program(self):
        """Compiled once for each state of its source."""
        source, made = HERE / "mpi_rank.c", self.folder / "mpi_rank"
        if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
            self.folder.mkdir(parents=True, exist_ok=True)
            done = subprocess.run(["mpicc", "-O2", "-o", made, source], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise PeerFailed(f"mpicc cannot compile {source}: {done.stderr.strip()}")
        return str(made)

    def on_hosts(self, lab, words, limit):
        network = f"{lab.addresses[0]}/24"
        command = [*self.mpirun, "--oversubscribe", "-n", lab.shape.hosts, "--host", ",".join(lab.addresses),
                   "--mca", "plm_rsh_agent", lab.agent, "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", network,
                   "--mca", "oob_tcp_if_include", network, self.program(), *words]
        return wait([lab.popen(0, command, **PIPES)], limit, self.name)

    def on_this_host(self, ranks, words, limit):
        # Where each rank has a core, it need not give way while it waits.
        crowded = ["--oversubscribe"] if ranks > os.cpu_count() else []
        command = [*self.mpirun, *crowded, "-n", str(ranks), "--mca", "btl", "vader,self", self.program(), *words]
        return wait([subprocess.Popen(command, stdin=subprocess.DEVNULL, **PIPES)], limit, self.name)


RUNNERS = [Gloo(), OpenMpi()]


def measure(runner, words, run):
    """{(operation, bytes): (seconds, share of a processor)}: the slowest rank's median, and the ranks' mean share."""
    rows = {}
    for line in run(words):
        if line.startswith('{"case"'):
            row = json.loads(line)
            rows.setdefault(row["case"], []).append(row)
    missing = [word for word in words if word not in rows]
    if missing:
        raise PeerFailed(f"{runner.name} said nothing of {missing[0]}")
    return {(word.split(":")[0], int(word.split(":")[1])): (
        max(row["median_s"] for row in rows[word]), sum(row["processor_share"] for row in rows[word]) / len(rows[word]))
            for word in words}
