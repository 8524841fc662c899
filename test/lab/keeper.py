# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process that holds a lab: it makes the hosts, their links and quotas, and takes them down when it is told to, when
it is ended, or when the program that made the lab is gone. The kernel ends the hosts when it is killed."""
import contextlib
import ctypes
import dataclasses
import json
import os
import pathlib
import re
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time

from hosts import (PATH, PREFIX, LabError, LabUnavailable, Server, address, address6, command, folder_of, host_name)

MAX_HOSTS = 64
PERIOD_US = 5000  # of a quota: short, so that a host that has used its share is not away for long
START_LIMIT, STOP_LIMIT = 60, 30  # seconds
NOWHERE = "02:00:00:00:00:01"  # no host's device
LINK_STATES = ("up", "down", "mute", "deaf")
UNITS = {"kbit": 10**3, "mbit": 10**6, "gbit": 10**9}


def rate_bits(text):
    """Bits per second of '100mbit'."""
    match = re.fullmatch(r"([1-9][0-9]{0,8})(kbit|mbit|gbit)", text)
    bits = int(match[1]) * UNITS[match[2]] if match else 0
    if not 10**5 <= bits <= 10**11:
        raise LabError(f"a rate is a whole number and kbit, mbit or gbit, from 100kbit to 100gbit; got '{text}'")
    return bits


def default_congestion():
    """Linux's own choice, as a machine's may be another; reno where a network namespace may not choose that one."""
    allowed = pathlib.Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
    return "cubic" if not allowed.exists() or "cubic" in allowed.read_text().split() else "reno"


@dataclasses.dataclass(frozen=True)
class Shape:
    """What a lab is made of."""
    hosts: int = 2
    rate: str = "1gbit"
    burst: int = 0  # bytes that a link passes at once; 0: a millisecond of the rate, at least 16 KiB
    share: float = 0.0  # of one processor for each host; 0: no quota
    mtu: int = 1500
    clock: int = 0  # seconds that each host's monotonic clock is ahead of the one before it
    congestion: str = dataclasses.field(default_factory=default_congestion)  # how TCP controls congestion

    def check(self):
        if not 1 <= self.hosts <= MAX_HOSTS:
            raise LabError(f"a lab has 1 to {MAX_HOSTS} hosts, got {self.hosts}")
        rate_bits(self.rate)
        if self.burst and not 2048 <= self.burst <= 2**30:
            raise LabError(f"a burst is from 2048 to {2**30} bytes, got {self.burst}")
        if self.share and not 0.02 <= self.share <= 1024:
            raise LabError(f"a share is from 0.02 to 1024 processors, got {self.share}")
        if not 576 <= self.mtu <= 9000:
            raise LabError(f"an MTU is from 576 to 9000 bytes, got {self.mtu}")
        if not 0 <= self.clock <= 10**6:
            raise LabError(f"clocks are 0 to 1000000 s apart, got {self.clock}")
        if not re.fullmatch(r"[a-z0-9_-]{1,15}", self.congestion):
            raise LabError(f"congestion control is a name of this system, such as cubic, reno or bbr; got '{self.congestion}'")
        return self

    def burst_bytes(self):
        return self.burst or max(16 * 1024, rate_bits(self.rate) // 8 // 1000)


# --- processor quotas ----------------------------------------------------------------------------------------------


def control_folder():
    """The folder of the processor controller for this process's own group, and whether it is of version 1."""
    groups = [line.split(":", 2) for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()]
    mounts = [line.split(" - ") for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]
    for number, controllers, path in groups:
        for place, system in mounts:
            fields, (kind, _, options) = place.split(), system.split(" ", 2)
            mount = pathlib.Path(fields[4])
            if kind == "cgroup" and "cpu" in controllers.split(",") and "cpu" in options.split(","):
                return mount / os.path.relpath(path, fields[3]), True
            if kind == "cgroup2" and number == "0" and "cpu" in (mount / "cgroup.controllers").read_text().split():
                return mount / os.path.relpath(path, fields[3]), False
    raise LabUnavailable("no control group with the processor controller is mounted here")


class Quotas:
    """A control group for each host, below this process's own. Up to their quotas hosts come before all else on the
    machine, so that its other work disturbs them little."""

    def __init__(self, name, shape):
        parent, first_version = control_folder()
        self.folders = [parent / f"{PREFIX}{name}-{host}" for host in range(shape.hosts)]
        microseconds = str(int(PERIOD_US * shape.share))
        try:
            if not first_version and "cpu" not in (parent / "cgroup.subtree_control").read_text().split():
                (parent / "cgroup.subtree_control").write_text("+cpu")
            for folder in self.folders:
                folder.mkdir()
                if first_version:
                    (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                    (folder / "cpu.cfs_quota_us").write_text(microseconds)
                    (folder / "cpu.shares").write_text("262144")
                else:
                    (folder / "cpu.max").write_text(f"{microseconds} {PERIOD_US}")
                    (folder / "cpu.weight").write_text("10000")
        except OSError as error:
            remove_groups(self.folders)
            raise LabUnavailable(f"no processor quota can be set here: {error}") from None


def remove_groups(folders):
    """A group can be removed some time after its last process has ended."""
    end = time.monotonic() + STOP_LIMIT
    for folder in folders:
        while folder.exists():
            try:
                folder.rmdir()
            except FileNotFoundError:
                pass
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.01)


# --- the lab -------------------------------------------------------------------------------------------------------


def check_machine():
    """Raises LabUnavailable where it is known at once that no lab can be made."""
    for tool, package in ("ip", "iproute2"), ("tc", "iproute2"), ("unshare", "util-linux"), ("nsenter", "util-linux"):
        if not shutil.which(tool, path=PATH):
            raise LabUnavailable(f"'{tool}' is not installed (package {package})")
    if os.geteuid() != 0:
        raise LabUnavailable("network namespaces need root here")


class Ended(BaseException):
    """A signal asked the keeper to end."""


class Keeper:
    def __init__(self, name, shape):
        self.name, self.shape, self.folder = name, shape, folder_of(name)
        self.made, self.processes, self.quotas = False, [], None
        self.libc = ctypes.CDLL(None, use_errno=True)

    def up(self):
        check_machine()
        try:
            self.folder.mkdir(mode=0o700)
        except FileExistsError:
            raise LabError(f"there is a lab '{self.name}' already (lab.py down {self.name})") from None
        self.made = True
        (self.folder / "keeper").write_text(str(os.getpid()))
        hosts = range(self.shape.hosts)
        (self.folder / "hosts").write_text("127.0.0.1 localhost\n::1 localhost\n" + "".join(
            f"{address(host)} {host_name(host)}\n{address6(host)} {host_name(host)}-6\n" for host in hosts))
        agent = self.folder / "agent"
        program = [sys.executable, "-S", "-E", str(pathlib.Path(__file__).resolve().with_name("agent.py")), self.name]
        agent.write_text(f'#!/bin/sh\nexec {shlex.join(program)} "$@"\n')
        agent.chmod(0o755)
        if self.shape.share:
            self.quotas = Quotas(self.name, self.shape)
        switch = self.start([], ["sleep", "infinity"])
        self.within(switch, "ip", "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
        self.within(switch, "ip", "link", "set", "br0", "up")
        # Packet filters are no part of a switch, and their time would be counted to the hosts that send. Where they cannot be left out,
        # all is as before.
        self.within(switch, "sh", "-c", "for file in /proc/sys/net/bridge/bridge-nf-call-*; do echo 0 > $file; done 2>/dev/null || true")
        for host in hosts:
            self.connect(switch, self.start_host(host), host)
        (self.folder / "lab.json").write_text(json.dumps(dataclasses.asdict(self.shape)))

    def start(self, namespaces, words, group=None, **options):
        """Starts a process in namespaces of its own; returns when it has them."""
        def prepare():
            death_signal = 1  # PR_SET_PDEATHSIG
            if self.libc.prctl(death_signal, signal.SIGKILL) != 0:
                os._exit(1)
            if group:
                (group / "cgroup.procs").write_text("0")
        process = subprocess.Popen(
            ["unshare", "--net", *namespaces, "--", "sh", "-c", 'echo entered; exec "$@"', "sh", *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, PATH=PATH),
            preexec_fn=prepare, **options)
        self.processes.append(process)
        self.expect(process, "entered", "no network namespaces can be made here")
        return process

    def start_host(self, host):
        (self.folder / f"tmp{host}").mkdir()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(self.folder / f"host{host}.socket"))
            listener.listen(128)
            process = self.start(
                ["--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child"] +
                (["--time", f"--monotonic={self.shape.clock * host}"] if self.shape.clock else []),
                [sys.executable, __file__, "serve", self.name, str(host), str(listener.fileno())],
                self.quotas.folders[host] if self.quotas else None, pass_fds=[listener.fileno()])
        self.expect(process, "ready", f"host {host} does not start")
        return process

    def expect(self, process, word, what):
        """Waits for a line; what the process says instead goes into the error."""
        ready = select.select([process.stdout], [], [], START_LIMIT)[0]
        if ready and os.read(process.stdout.fileno(), 64).decode().strip() == word:
            return
        process.kill()
        said = process.communicate()[1].decode(errors="replace").strip()
        raise LabUnavailable(f"{what}: {said.splitlines()[-1] if said else 'no answer'}")

    def within(self, process, *words):
        command("nsenter", f"--net=/proc/{process.pid}/ns/net", *words)

    def control_congestion(self, process):
        """In a process's network namespace, as the machine's own choice would depend on the machine."""
        try:
            self.within(process, "sh", "-c", f"echo {self.shape.congestion} > /proc/sys/net/ipv4/tcp_congestion_control")
        except LabUnavailable:
            available = pathlib.Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
            raise LabUnavailable(f"TCP cannot control congestion by {self.shape.congestion} here, only by "
                                 f"{', '.join(available)}") from None

    def connect(self, switch, process, host):
        """A cable from a host to the switch, shaped at both ends."""
        self.control_congestion(process)
        mtu = ["mtu", str(self.shape.mtu)]
        command("ip", "link", "add", "e0", *mtu, "netns", str(process.pid), "type", "veth", "peer", "name", f"p{host}", *mtu,
                "netns", str(switch.pid))
        self.within(process, "ip", "addr", "add", f"{address(host)}/24", "dev", "e0")
        if self.shape.mtu >= 1280:  # the least that IPv6 has
            # Without the check for duplicates an address can be used at once.
            self.within(process, "ip", "addr", "add", f"{address6(host)}/64", "dev", "e0", "nodad")
        self.within(process, "ip", "link", "set", "lo", "up")
        self.within(process, "ip", "link", "set", "e0", "up")
        self.within(switch, "ip", "link", "set", f"p{host}", "master", "br0", "up")
        bucket = ["root", "tbf", "rate", self.shape.rate, "burst", f"{self.shape.burst_bytes()}b", "latency", "100ms"]
        self.within(process, "tc", "qdisc", "add", "dev", "e0", *bucket)
        self.within(switch, "tc", "qdisc", "add", "dev", f"p{host}", *bucket)

    def lose_frames(self, sender, receiver, lost):
        """Frames from one host to another go to a device that does not exist. No socket is told."""
        process = self.processes[1 + sender]
        for family, place in ("-4", address(receiver)), ("-6", address6(receiver)):
            if family == "-6" and self.shape.mtu < 1280:
                continue
            entry = ["lladdr", NOWHERE, "nud", "permanent"] if lost else []
            with contextlib.suppress(LabUnavailable if not lost else ()):  # an entry that is not there cannot be taken away
                self.within(process, "ip", family, "neigh", "replace" if lost else "del", place, "dev", "e0", *entry)

    def obey(self, words):
        """'link HOST up|down|mute|deaf' puts a cable in, pulls it, or loses what the host sends or what is sent to it; 'off
        HOST' is a loss of power."""
        host = int(words[1])
        if words[0] == "link":
            for other in range(self.shape.hosts):
                if other != host and words[2] != "down":
                    self.lose_frames(host, other, words[2] == "mute")
                    self.lose_frames(other, host, words[2] == "deaf")
            self.within(self.processes[0], "ip", "link", "set", f"p{host}", "down" if words[2] == "down" else "up")
        else:
            # The network goes first, so that no connection is closed in an orderly way.
            self.within(self.processes[0], "ip", "link", "set", f"p{host}", "down")
            self.processes[1 + host].kill()
            self.processes[1 + host].wait()

    def keep(self, owner):
        """Until the owner's end of a pipe is closed (None: there is no owner)."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(self.folder / "keeper.socket"))
            listener.listen(8)
            print("up", flush=True)
            if owner is None:  # whoever made the lab must not wait for our output to end
                os.dup2(os.open(os.devnull, os.O_RDWR), 2)
            while True:
                ready = select.select([listener] if owner is None else [listener, owner], [], [])[0]
                if owner in ready:
                    return
                with listener.accept()[0] as connection:
                    try:
                        connection.settimeout(10)
                        self.obey(connection.recv(256).decode().split())
                        connection.sendall(b"ok")
                    except (OSError, LabError, ValueError, IndexError) as error:
                        with contextlib.suppress(OSError):
                            connection.sendall(str(error).encode())

    def down(self):
        for process in self.processes:
            process.kill()  # its namespaces' processes go with it
        for process in self.processes:
            process.wait()
        if self.quotas:
            remove_groups(self.quotas.folders)
        if self.made:
            shutil.rmtree(self.folder, ignore_errors=True)


def remove_leftovers(name):
    """What a keeper left that was killed: its folder and control groups. Its hosts ended with it."""
    with contextlib.suppress(LabUnavailable):
        parent, _ = control_folder()
        remove_groups(list(parent.glob(f"{PREFIX}{name}-[0-9]*")))
    shutil.rmtree(folder_of(name), ignore_errors=True)


def main(name, shape, attached):
    def end(*_):
        raise Ended
    signals = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    for number in signals:
        signal.signal(number, end)
    keeper = Keeper(name, shape)
    try:
        keeper.up()
        keeper.keep(0 if attached else None)
    except Ended:
        pass
    except LabUnavailable as error:
        print("unavailable:", error, flush=True)
    except (LabError, OSError) as error:
        print("failed:", error, flush=True)
    finally:
        for number in signals:
            signal.signal(number, signal.SIG_IGN)
        keeper.down()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        Server(sys.argv[2], int(sys.argv[3]), socket.socket(fileno=int(sys.argv[4]))).run()
    else:
        main(sys.argv[2], Shape(**json.loads(sys.argv[3])), sys.argv[1] == "attached")
