# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the table compares: each runner runs cases of collectives, either with ranks on each host of a lab, or with
several ranks on this host. To add one, write a class like these and add it to RUNNERS."""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
BIN = pathlib.Path(os.environ.get("BRAID_BUILD_DIR", HERE.parents[1] / "build")) / "bin"
PORT = 29411


class PeerFailed(Exception):
    pass


class Runner:
    """`words` of a case: OPERATION:BYTES:RUNS:CALLS. A time is that of a call: the mean of the calls of a run, which follow one
    another, in the run of median time. Single calls say less: those of a chain that a link holds up wait in turns."""
    name, short = "", ""

    def unavailable(self):
        """Why it cannot run here, or None."""
        raise NotImplementedError

    def on_hosts(self, lab, each, words, limit):
        """The lines that the ranks printed, `each` on a host."""
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

    def on_hosts(self, lab, each, words, limit):
        count = lab.shape.hosts * each
        return wait([lab.popen(rank // each, self.command(words), env=self.variables(rank, count, lab.addresses[0], "e0"), **PIPES)
                     for rank in range(count)], limit, self.name)

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

    def on_hosts(self, lab, each, words, limit):
        network = f"{lab.addresses[0]}/24"
        command = [*self.mpirun, "--oversubscribe", "-n", lab.shape.hosts * each, "--host",
                   ",".join(f"{address}:{each}" for address in lab.addresses), "--mca", "plm_rsh_agent", lab.agent, "--mca", "btl", "tcp,self" if each == 1 else "tcp,vader,self", "--mca", "btl_tcp_if_include", network,
                   "--mca", "oob_tcp_if_include", network, self.program(), *words]
        return wait([lab.popen(0, command, **PIPES)], limit, self.name)

    def on_this_host(self, ranks, words, limit):
        # Where each rank has a core, it need not give way while it waits.
        crowded = ["--oversubscribe"] if ranks > os.cpu_count() else []
        command = [*self.mpirun, *crowded, "-n", str(ranks), "--mca", "btl", "vader,self", self.program(), *words]
        return wait([subprocess.Popen(command, stdin=subprocess.DEVNULL, **PIPES)], limit, self.name)


class Braid(Runner):
    """A program of collectives, one after another, that `braid compile` compiles and braid-run executes. The report
    has the times of its collectives in the run of median time."""
    name, short = "Braid", "braid"

    def unavailable(self):
        for tool in "braid", "braid-run":
            if not (BIN / tool).exists():
                return f"there is no {BIN / tool} (scripts/build.sh)"
        return None

    def on_hosts(self, lab, each, words, limit):
        hosts = ",".join(f"{address}:{each}" for address in lab.addresses)
        options = ["--hosts", hosts, "--agent", lab.agent]
        return self.run(words, lab.shape.hosts * each, limit, lambda command: lab.popen(0, [*command, *options], **PIPES))

    def on_this_host(self, ranks, words, limit):
        pin = ["--pin"] if ranks <= os.cpu_count() else []
        return self.run(words, ranks, limit, lambda command: subprocess.Popen(
            [*map(str, command), "--transport", "shm", *pin], stdin=subprocess.DEVNULL, **PIPES))

    def run(self, words, ranks, limit, start):
        lines = []
        for word in words:
            operation, (size, runs, calls) = word.split(":")[0], map(int, word.split(":")[1:])
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                text, given, expected = collectives(operation, size // 4, ranks, calls)
                (folder / "program.mlir").write_text(text)
                np.save(folder / "x.npy", given)
                np.save(folder / "y0.npy", expected)
                wait([subprocess.Popen([BIN / "braid", "compile", folder / "program.mlir", "-o", folder / "program.braid"],
                                       stdin=subprocess.DEVNULL, **PIPES)], limit, "braid compile")
                inputs = [option for call in range(calls) for option in ("--input", f"x{call}={folder / 'x.npy'}")]
                wait([start([BIN / "braid-run", folder / "program.braid", *inputs, "--check", folder / "y0.npy", "--tolerance", 0,
                             "--warmup", 1, "--repeat", runs, "--report", folder / "report.json",
                             "--time-limit", int(limit)])], limit, self.name)
                report = json.loads((folder / "report.json").read_text())
            of_runs = report["median_run_s"] * report["runs"]
            # Ranks on shm are other processes.
            share = report["processor_s"] / of_runs if report["transport"] == "ucx" else None
            lines.append(json.dumps({"case": word, "rank": report["comm_of_rank"], "processor_share": share, "median_s":
                                     statistics.mean(call["comm_s"] for call in report["collectives"])}))
        return lines


def collectives(operation, count, ranks, calls):
    """A program of some calls, each of its own input, the value of each input, and that of the first result."""
    part, rows = count // ranks, np.arange(1, ranks + 1, dtype=np.float32)

    def of_ranks(*shape):
        """The part of each rank has its number."""
        return np.broadcast_to(rows.reshape(-1, *[1] * len(shape)), (ranks, *shape))

    def sums(*shape):
        return np.full(shape, rows.sum(), np.float32)
    form, given, local, expected, result, split = {
        "all_reduce": ("all_reduce sum({})", of_ranks(count), [1, count], sums(1, count), [1, count], None),
        "all_gather": ("all_gather({}) dim 0", of_ranks(part), [1, part], of_ranks(part), [ranks, part], None),
        "reduce_scatter": ("reduce_scatter sum({}) dim 1", of_ranks(ranks, part), [1, ranks, part], sums(1, ranks, part),
                           [1, 1, part], 1)}[operation]

    def typed(shape):
        return f"tensor<{'x'.join(map(str, shape))}xf32>"

    def value(name, shape, dimension):
        axes = ", ".join("{r}" if index == dimension else "{}" for index in range(len(shape)))
        return f'{{nn.name = "{name}", comm.global_type = {typed(shape)}, comm.sharding = #comm.sharding<@mesh, [{axes}]>}}'
    operands = ", ".join(f"%x{call}: {typed(local)} {value(f'x{call}', given.shape, 0)}" for call in range(calls))
    results = ", ".join(f"{typed(result)} {value(f'y{call}', expected.shape, split)}" for call in range(calls))
    types = typed(local) if local == result else f"{typed(local)} -> {typed(result)}"
    lines = [f'  %y{call} = comm.{form.format(f"%x{call}")} over <@mesh, {{r}}> role "call.{call}" : {types}'
             for call in range(calls)]
    return "\n".join([f"comm.mesh @mesh <r = {ranks}>", f"func.func @main({operands})", f"    -> ({results})",
                      "    attributes {nn.entry} {", *lines,
                      f"  return {', '.join(f'%y{call}' for call in range(calls))} : {', '.join([typed(result)] * calls)}",
                      "}", ""]), given, expected


RUNNERS = [Braid(), Gloo(), OpenMpi()]


def measure(runner, words, run):
    """{(operation, bytes): (seconds, share of a processor)}: the slowest rank's median, and the ranks' mean share, or None
    where it is not known."""
    rows = {}
    for line in run(words):
        if line.startswith('{"case"'):
            row = json.loads(line)
            rows.setdefault(row["case"], []).append(row)
    missing = [word for word in words if word not in rows]
    if missing:
        raise PeerFailed(f"{runner.name} said nothing of {missing[0]}")

    def share(word):
        shares = [row["processor_share"] for row in rows[word]]
        return None if None in shares else statistics.mean(shares)
    return {(word.split(":")[0], int(word.split(":")[1])): (max(row["median_s"] for row in rows[word]), share(word))
            for word in words}
