#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Test hosts on one machine: network namespaces behind a switch, with shaped links and a processor quota each.

    with Lab(hosts=4, rate="100mbit", share=0.45) as lab:
        lab.run(0, ["hostname"])                                     # as subprocess.run, in host 0
        lab.run(0, ["mpirun", "--mca", "plm_rsh_agent", lab.agent, "--host", ",".join(lab.addresses), ...])

See README.md beside this file for what the hosts have, and what is left out.
"""
import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time

import hosts
import keeper
from hosts import LabError, LabUnavailable, folder_of
from keeper import Shape, default_congestion

UNAVAILABLE = 77  # exit status, as Automake's for a test that is skipped


class Lab:
    """Hosts that exist until down(), the end of the with block, or the end of this process."""

    def __init__(self, name=None, **shape):
        self.name = name or f"{os.getpid()}-{secrets.token_hex(3)}"
        self.shape = Shape(**shape).check()
        self.folder = folder_of(self.name)
        self.keeper = None

    @property
    def agent(self):
        """The path of a program that takes ssh's command line; it runs in any host, and outside."""
        return str(self.folder / "agent")

    @property
    def addresses(self):
        return [hosts.address(host) for host in range(self.shape.hosts)]

    @property
    def addresses6(self):
        return [hosts.address6(host) for host in range(self.shape.hosts)]

    @property
    def names(self):
        return [hosts.host_name(host) for host in range(self.shape.hosts)]

    def up(self):
        self.keeper = start_keeper(self.name, self.shape, attached=True)
        return self

    def down(self):
        if self.keeper:
            self.keeper.stdin.close()
            try:
                self.keeper.wait(keeper.STOP_LIMIT + 10)
            except subprocess.TimeoutExpired:
                self.keeper.kill()
                self.keeper.wait()
            self.keeper.stdout.close()
            self.keeper = None
            keeper.remove_leftovers(self.name)

    def __enter__(self):
        return self.up()

    def __exit__(self, *_):
        self.down()

    def words(self, host, words):
        """The command line that runs a command in a host."""
        return [sys.executable, __file__, "exec", self.name, str(host), "--", *map(str, words)]

    def run(self, host, words, **options):
        return subprocess.run(self.words(host, words), **{"check": False, "stdin": subprocess.DEVNULL, **options})

    def popen(self, host, words, **options):
        return subprocess.Popen(self.words(host, words), **{"stdin": subprocess.DEVNULL, **options})

    def link(self, host, state):
        """Pulls the cable of a host ("down"), loses all that it sends ("mute") or that is sent to it ("deaf"), without a word to
        anybody, or puts it in again ("up")."""
        tell_keeper(self.name, f"link {host} {state}")

    def off(self, host):
        """Takes a host's power away, for good: its network first, then all of its processes."""
        tell_keeper(self.name, f"off {host}")


def start_keeper(name, shape, attached):
    process = subprocess.Popen(
        [sys.executable, keeper.__file__, "attached" if attached else "detached", name,
         json.dumps(dataclasses.asdict(shape))],
        stdin=subprocess.PIPE if attached else subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        line = process.stdout.readline().strip()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    if line == "up":
        return process
    process.wait()
    kind, _, message = line.partition(": ")
    raise (LabUnavailable if kind == "unavailable" else LabError)(message or "the lab's keeper ended before the lab was up")


def tell_keeper(name, text):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(str(folder_of(name) / "keeper.socket"))
        except OSError as error:
            raise LabError(f"there is no lab '{name}': {error.strerror}") from None
        connection.sendall(text.encode())
        reply = connection.recv(4096).decode()
    if reply != "ok":
        raise LabError(reply or f"the keeper of lab '{name}' ended")


def labs():
    return sorted(path.name[len(hosts.PREFIX):] for path in pathlib.Path(folder_of("x")).parent.glob(hosts.PREFIX + "*"))


# --- command line --------------------------------------------------------------------------------------------------


def add_shape(parser):
    parser.add_argument("--hosts", type=int, default=2, metavar="N", help=f"1 to {keeper.MAX_HOSTS} (default: 2)")
    parser.add_argument("--rate", default="1gbit", help="of each link in each direction, such as 100mbit (default: 1gbit)")
    parser.add_argument("--burst", type=int, default=0, metavar="BYTES",
                        help="that a link passes at once (default: a millisecond of the rate, at least 16 KiB)")
    parser.add_argument("--share", type=float, default=0.0, metavar="X",
                        help="each host's quota, in processors, such as 0.45 (default: no quota)")
    parser.add_argument("--mtu", type=int, default=1500, help="576 to 9000 (default: 1500)")
    parser.add_argument("--clock", type=int, default=0, metavar="SECONDS",
                        help="that each host's monotonic clock is ahead of the one before it (default: 0, one clock)")
    parser.add_argument("--congestion", default=default_congestion(), metavar="NAME",
                        help="how TCP controls congestion, such as reno or bbr (default: cubic, as Linux does, or reno where "
                             "that is not allowed)")


def shape_of(arguments):
    return Shape(arguments.hosts, arguments.rate, arguments.burst, arguments.share, arguments.mtu, arguments.clock,
                 arguments.congestion).check()


def run_up(arguments):
    folder = folder_of(arguments.name)
    start_keeper(arguments.name, shape_of(arguments), attached=False)
    print(f"lab '{arguments.name}': {arguments.hosts} hosts, {hosts.address(0)} (host0) on; agent {folder / 'agent'}")
    return 0


def run_down(arguments):
    folder = folder_of(arguments.name)
    if not folder.exists():
        raise LabError(f"there is no lab '{arguments.name}'; there are: {', '.join(labs()) or 'none'}")
    with contextlib.suppress(ProcessLookupError, FileNotFoundError, ValueError):
        pid = int((folder / "keeper").read_text())
        # The number may be another process's by now.
        if b"keeper.py" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGTERM)
            end = time.monotonic() + keeper.STOP_LIMIT + 10
            while folder.exists():
                os.kill(pid, 0)
                if time.monotonic() > end:
                    os.kill(pid, signal.SIGKILL)
                    break
                time.sleep(0.01)
    keeper.remove_leftovers(arguments.name)
    return 0


def run_exec(arguments):
    if not arguments.command:
        raise LabError("exec expects a command after the host")
    if not shutil.which(arguments.command[0]):
        raise LabError(f"there is no program '{arguments.command[0]}'")
    return hosts.enter(arguments.name, hosts.host_of(arguments.name, arguments.host), arguments.command, os.getcwd(),
                       dict(os.environ), relay=True)


def run_link(arguments):
    tell_keeper(arguments.name, f"link {hosts.host_of(arguments.name, arguments.host)} {arguments.state}")
    return 0


def run_off(arguments):
    tell_keeper(arguments.name, f"off {hosts.host_of(arguments.name, arguments.host)}")
    return 0


def run_list(_):
    for name in labs():
        try:
            shape = Shape(**json.loads((folder_of(name) / "lab.json").read_text()))
            print(f"{name}: {shape.hosts} hosts, {shape.rate}, bursts of {shape.burst_bytes()} bytes, "
                  f"{f'{shape.share} processors each' if shape.share else 'no quota'}, MTU {shape.mtu}, "
                  f"TCP with {shape.congestion}")
        except (OSError, ValueError, TypeError):
            print(f"{name}: not up; lab.py down {name} removes what is left of it")
    return 0


def run_check(arguments):
    with Lab(**dataclasses.asdict(shape_of(arguments))):
        print("test hosts can be made here")
    return 0


def main():
    parser = argparse.ArgumentParser(
        prog="lab.py", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Test hosts on one machine: network namespaces behind a switch, with shaped links and a processor\n"
                    "quota each.",
        epilog="example:\n  lab.py up mine --hosts 4 --rate 100mbit --share 0.45\n"
               "  lab.py exec mine host0 iperf3 -s -1 & lab.py exec mine host1 iperf3 -c host0\n  lab.py down mine\n\n"
               f"Exit status: {UNAVAILABLE} where this machine cannot have test hosts, with the reason; 1 or 2 for other\n"
               "errors; exec gives its command's.")
    import encoded  # they import this file
    import layers
    import model
    import table
    commands = parser.add_subparsers(dest="verb", required=True, metavar="COMMAND")

    def add(verb, run, text, *names):
        sub = commands.add_parser(verb, help=text, description=text)
        for name in names:
            sub.add_argument(name)
        sub.set_defaults(run=run)
        return sub
    add_shape(add("up", run_up, "make a lab, which stays until it is taken down", "name"))
    add("down", run_down, "take a lab down, or what is left of one", "name")
    add("list", run_list, "list the labs of this machine")
    add_shape(add("check", run_check, "make a lab and take it down, to see whether this machine can"))
    add("exec", run_exec, "run a command in a host, which is given by number, name or address", "name", "host").add_argument(
        "command", nargs=argparse.REMAINDER)
    add("link", run_link, "pull the cable of a host, lose what it sends (mute) or what is sent to it (deaf), or put it in again",
        "name", "host").add_argument("state", choices=keeper.LINK_STATES)
    add("off", run_off, "take the power of a host away", "name", "host")
    table.add_arguments(add("table", table.run, "time collectives of Braid, PyTorch and MPI over test hosts and on this one"))
    model.add_arguments(add("model", model.run, "time one model under several plans over test hosts or on this one"))
    encoded.add_arguments(add("encoded", encoded.run, "time all_reduces that travel in fewer bits over test hosts, beside PyTorch with Gloo"))
    layers.add_arguments(add("layers", layers.run, "time LLaMA layers whose collectives travel in fewer bits, where these are a given "
                             "share of the time"))
    arguments = parser.parse_args()
    if getattr(arguments, "command", None) and arguments.command[0] == "--":
        arguments.command.pop(0)
    try:
        return arguments.run(arguments)
    except LabUnavailable as error:
        print(f"lab: skipped: {error}", file=sys.stderr)
        return UNAVAILABLE
    except (LabError, OSError) as error:
        print(f"lab: error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
