# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Commands in test hosts. The first process of a host's namespaces is a server on a socket in the lab's folder: a client
sends its standard descriptors and a command, and gets the command's exit status. So a host can start commands in
another one, as with sshd, though its namespaces hide the other's processes."""
import array
import contextlib
import json
import os
import pathlib
import re
import select
import signal
import socket
import struct
import subprocess

PREFIX = "braid-lab-"
NETWORK, NETWORK6 = "10.77.0", "fd77:0:0:1"
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
RELAYED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


class LabError(Exception):
    """The request is wrong, or something failed."""


class LabUnavailable(LabError):
    """This machine cannot have test hosts; the message says why."""


def address(host):
    return f"{NETWORK}.{host + 1}"


def address6(host):
    return f"{NETWORK6}::{host + 1:x}"


def host_name(host):
    return f"host{host}"


def folder_of(name):
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,31}", name):
        raise LabError(f"a lab's name is 1 to 32 small letters, digits and dashes, got '{name}'")
    return pathlib.Path("/tmp") / (PREFIX + name)  # the same for every TMPDIR, and short enough for a socket


def command(*words):
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
                          env=dict(os.environ, PATH=PATH))
    if done.returncode != 0:
        raise LabUnavailable(f"'{' '.join(words)}' failed: {done.stderr.strip() or done.stdout.strip()}")


# --- the server ----------------------------------------------------------------------------------------------------


class Server:
    """Process 1 of a host: starts what clients ask for, and reaps every process that ends."""

    def __init__(self, name, host, listener):
        self.name, self.host, self.listener, self.folder = name, host, listener, folder_of(name)
        self.clients = {}  # connection -> its command
        self.others = []  # commands whose clients are gone

    def run(self):
        socket.sethostname(host_name(self.host))
        command("mount", "-t", "proc", "proc", "/proc")
        command("mount", "-t", "tmpfs", "tmpfs", "/dev/shm")
        # /sys/class/net lists the devices of the network namespace in which it was mounted; UCX looks there. The control
        # groups below it stay.
        groups = self.folder / f"groups{self.host}"
        groups.mkdir()
        command("mount", "--rbind", "/sys/fs/cgroup", str(groups))
        command("mount", "-t", "sysfs", "sysfs", "/sys")
        command("mount", "--rbind", str(groups), "/sys/fs/cgroup")
        command("mount", "--bind", str(self.folder / "hosts"), "/etc/hosts")
        wakeup, write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(write_end)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        print("ready", flush=True)
        while True:
            for ready in select.select([self.listener, wakeup, *self.clients], [], [])[0]:
                if ready is self.listener:
                    self.accept()
                elif ready == wakeup:
                    os.read(wakeup, 4096)
                elif ready in self.clients:
                    self.signal(ready)
            self.reap()

    def accept(self):
        connection = self.listener.accept()[0]
        try:
            connection.settimeout(10)
            self.clients[connection] = self.start(connection)
            connection.settimeout(None)
        except (OSError, EOFError, ValueError, KeyError, struct.error) as error:
            answer(connection, {"failed": f"{host_name(self.host)}: {error}"})

    def start(self, connection):
        data, ancillary, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(3 * 4))
        files = array.array("i")
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                files.frombytes(payload[:len(payload) - len(payload) % 4])
        try:
            request = json.loads(read_exactly(connection, struct.unpack("=I", data)[0]))
            environment = dict(request["environment"], TMPDIR=str(self.folder / f"tmp{self.host}"), TESTLAB=self.name,
                               TESTLAB_HOST=str(self.host))
            # A session of its own: a client's signals go to all of it.
            return subprocess.Popen(request["command"], stdin=files[0], stdout=files[1], stderr=files[2], env=environment,
                                    cwd=request["directory"], start_new_session=True)
        finally:
            for file in files:
                os.close(file)

    def signal(self, connection):
        data = connection.recv(4)
        if len(data) == 4:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.clients[connection].pid, struct.unpack("=i", data)[0])
        else:  # the client is gone; its command goes on, as under sshd
            self.others.append(self.clients.pop(connection))
            connection.close()

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for connection, process in list(self.clients.items()):
                if process.pid == pid:
                    process.returncode = os.waitstatus_to_exitcode(status)
                    answer(connection, {"status": process.returncode})
                    del self.clients[connection]
            for process in [process for process in self.others if process.pid == pid]:
                process.returncode = os.waitstatus_to_exitcode(status)
                self.others.remove(process)


def read_exactly(connection, size):
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError("a request ended early")
        data += more
    return data


def answer(connection, what):
    with contextlib.suppress(OSError), connection:
        connection.sendall(json.dumps(what).encode())


# --- the client ----------------------------------------------------------------------------------------------------


def enter(name, host, words, directory, environment, relay):
    """Runs a command in a host with our standard descriptors and returns its exit status, 128 + N for signal N.
    `relay`: signals go to the command."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(folder_of(name) / f"host{host}.socket"))
    except OSError as error:
        raise LabError(f"host {host} of lab '{name}' does not answer: {error.strerror}") from None
    if relay:
        for number in RELAYED:
            signal.signal(number, lambda number, _: connection.send(struct.pack("=i", number)))
    request = json.dumps({"command": words, "directory": directory, "environment": environment}).encode()
    reply = b""
    with contextlib.suppress(ConnectionError):
        connection.sendmsg([struct.pack("=I", len(request))],
                           [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
        connection.sendall(request)
        while more := connection.recv(65536):
            reply += more
    if not reply:
        raise LabError(f"host {host} of lab '{name}' went down")
    result = json.loads(reply)
    if "failed" in result:
        raise LabError(result["failed"])
    return result["status"] if result["status"] >= 0 else 128 - result["status"]


def host_of(name, text):
    """The number of a host that is named by its number, name or address."""
    folder = folder_of(name)
    count = len(list(folder.glob("host*.socket")))
    if count == 0:
        raise LabError(f"there is no lab '{name}'")
    for host in range(count):
        if text in (str(host), host_name(host), host_name(host) + "-6", address(host), address6(host)):
            return host
    raise LabError(f"lab '{name}' has no host '{text}': it has {host_name(0)} to {host_name(count - 1)}")
