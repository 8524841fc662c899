# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The test hosts of test/lab: that they are apart, that links and quotas hold, and that nothing is left of them."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

import braidtest

LAB = braidtest.ROOT / "test" / "lab"
sys.path.insert(0, str(LAB))
import keeper  # noqa: E402
from keeper import default_congestion  # noqa: E402
from lab import UNAVAILABLE, Lab, LabError, LabUnavailable  # noqa: E402

PYTHON = sys.executable


def lab_tool(*words, **options):
    return subprocess.run([PYTHON, LAB / "lab.py", *map(str, words)], capture_output=True, text=True, check=False,
                          timeout=120, stdin=subprocess.DEVNULL, **options)


@pytest.fixture(scope="module", autouse=True)
def hosts_can_be_made():
    try:
        with Lab(hosts=1, share=0.5):
            pass
    except LabUnavailable as error:
        pytest.skip(f"no test hosts here: {error}")


@pytest.fixture(scope="module")
def lab():
    with Lab(hosts=3, rate="1gbit") as made:
        yield made


def says(lab, host, *words, **options):
    done = lab.run(host, words, capture_output=True, text=True, timeout=60, **options)
    assert done.returncode == 0, done
    return done.stdout


def processes_of(name):
    """Processes whose command line or environment names the lab."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if name.encode() in (path / "cmdline").read_bytes() + (path / "environ").read_bytes():
                found.append((int(path.name), (path / "cmdline").read_bytes()))
        except OSError:  # it ended, or is none of ours
            continue
    return found


def nothing_left(lab, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        groups = list(keeper.control_folder()[0].glob(f"{keeper.PREFIX}{lab.name}*"))
        if not processes_of(lab.name) and not groups and not lab.folder.exists():
            return True
        time.sleep(0.02)
    print(processes_of(lab.name), groups, list(lab.folder.glob("*")))
    return False


# --- hosts are apart -----------------------------------------------------------------------------------------------

SERVE = """
import socket, sys
listener = socket.create_server((sys.argv[1], 5000), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
print("listening", flush=True)
connection = listener.accept()[0]
sys.stdout.write(connection.recv(100).decode())
"""
SAY = """
import socket, sys
socket.create_connection((sys.argv[1], 5000), timeout=float(sys.argv[3])).sendall(sys.argv[2].encode())
"""


def serve(lab, host, address):
    server = lab.popen(host, [PYTHON, "-c", SERVE, address], stdout=subprocess.PIPE, text=True)
    assert server.stdout.readline() == "listening\n"
    return server


def test_hosts_have_names_and_addresses(lab):
    assert [says(lab, host, "hostname").strip() for host in range(3)] == lab.names == ["host0", "host1", "host2"]
    for place, target in [(lab.addresses[1],) * 2, (lab.addresses[1], "host1"), (lab.addresses6[1],) * 2,
                          (lab.addresses6[1], "host1-6")]:
        server = serve(lab, 1, place)
        says(lab, 0, PYTHON, "-c", SAY, target, f"hello {target}", 30)
        assert server.communicate(timeout=60)[0] == f"hello {target}"


def test_hosts_share_no_memory_and_see_no_processes(lab):
    says(lab, 0, "touch", "/dev/shm/braid-lab-test")
    assert says(lab, 0, "ls", "/dev/shm") == "braid-lab-test\n"
    assert says(lab, 1, "ls", "/dev/shm") == ""
    assert not os.path.exists("/dev/shm/braid-lab-test")
    sleeper = lab.popen(0, ["sleep", "4711"])
    while "sleep\0004711" not in says(lab, 0, "sh", "-c", "cat /proc/[0-9]*/cmdline"):
        assert sleeper.poll() is None
    assert "sleep\0004711" not in says(lab, 1, "sh", "-c", "cat /proc/[0-9]*/cmdline")
    sleeper.terminate()
    assert sleeper.wait(60) == 128 + signal.SIGTERM
    assert len({says(lab, host, "sh", "-c", "echo $TMPDIR") for host in range(3)}) == 3


def test_two_labs_at_once(lab):
    with Lab(hosts=2, rate="100mbit") as other:
        servers = [serve(which, 0, which.addresses[0]) for which in (lab, other)]
        for which, text in (lab, "first"), (other, "second"):
            says(which, 1, PYTHON, "-c", SAY, "host0", text, 30)
        assert [server.communicate(timeout=60)[0] for server in servers] == ["first", "second"]
        assert other.name in lab_tool("list").stdout and lab.name in lab_tool("list").stdout
    assert nothing_left(other)


# --- what is promised of links and quotas --------------------------------------------------------------------------

RECEIVE = """
import socket, sys
listener = socket.create_server(("", 5001))
print("listening", flush=True)
connection = listener.accept()[0]
while connection.recv(1 << 20):
    pass
connection.sendall(b"x")
"""
SEND = """
import socket, sys, time
connection = socket.create_connection((sys.argv[1], 5001))
data, left, begin = bytes(1 << 16), int(sys.argv[2]), time.monotonic()
while left > 0:
    left -= connection.send(data[:left])
connection.shutdown(socket.SHUT_WR)
connection.recv(1)
print(time.monotonic() - begin)
"""


@pytest.mark.parametrize("rate,size,burst,mtu", [("20mbit", 4 << 20, 0, 1500), ("200mbit", 32 << 20, 0, 1500),
                                                 ("200mbit", 32 << 20, 1 << 20, 9000), ("20mbit", 1 << 20, 0, 576)])
def test_a_link_passes_no_more_than_its_rate(rate, size, burst, mtu):
    """The bound is of bytes: in any time T at most rate * T + burst pass one bucket, and a second one as much again."""
    with Lab(hosts=2, rate=rate, burst=burst, mtu=mtu) as lab:
        receiver = lab.popen(1, [PYTHON, "-c", RECEIVE], stdout=subprocess.PIPE, text=True)
        assert receiver.stdout.readline() == "listening\n"
        seconds = float(says(lab, 0, PYTHON, "-c", SEND, "host1", size))
        assert receiver.wait(60) == 0
        most = keeper.rate_bits(rate) / 8 * seconds + 2 * lab.shape.burst_bytes()
        print(f"{rate}, MTU {mtu}: {size / (keeper.rate_bits(rate) / 8 * seconds):.3f} of the rate")
        assert size <= most, f"{size} bytes in {seconds} s"


SPIN = """
import time
begin = time.monotonic()
while time.monotonic() < begin + 1:
    pass
print(time.process_time() / (time.monotonic() - begin))
"""


def test_a_host_has_no_more_than_its_share():
    with Lab(hosts=2, share=0.2) as lab:
        spinners = [lab.popen(host, [PYTHON, "-c", SPIN], stdout=subprocess.PIPE, text=True) for host in (0, 0, 1)]
        shares = [float(spinner.communicate(timeout=60)[0]) for spinner in spinners]
        print("shares of a processor:", shares)
        # The kernel hands out quota by slices of 5 ms to each processor, and takes unused ones back late.
        assert shares[0] + shares[1] < 0.2 * 1.3 + 0.05 and shares[2] < 0.2 * 1.3 + 0.05


# --- commands ------------------------------------------------------------------------------------------------------


def test_exit_status_and_signals_of_a_command(lab):
    assert lab.run(0, ["sh", "-c", "exit 7"]).returncode == 7
    assert lab.run(0, ["sh", "-c", "kill -9 $$"]).returncode == 128 + signal.SIGKILL
    trap = lab.popen(1, ["sh", "-c", "trap 'exit 9' TERM; echo set; while true; do sleep 0.01; done"],
                     stdout=subprocess.PIPE, text=True)
    assert trap.stdout.readline() == "set\n"
    trap.terminate()
    assert trap.wait(60) == 9


def test_agent_is_like_ssh(lab, tmp_path):
    def agent(*words, **options):
        return subprocess.run([lab.agent, *words], capture_output=True, text=True, timeout=60, check=False, **options)
    done = agent("-x", "-o", "BatchMode=yes", "-T", "me@host1", "cat;", "echo $0 $BRAID_SECRET; pwd; exit 3",
                 input="given\n", cwd=tmp_path, env=dict(os.environ, BRAID_SECRET="not sent", HOME="/"))
    assert done.returncode == 3 and done.stdout == "given\n/bin/sh\n/\n", done
    for words, message in [(("nowhere", "true"), "could not resolve hostname nowhere"),
                           (("host0",), "expects [OPTIONS] HOST COMMAND")]:
        done = agent(*words)
        assert done.returncode == 255 and message in done.stderr, done
    # From a host to another one, which sees none of its processes.
    assert says(lab, 0, lab.agent, lab.addresses[2], "hostname") == "host2\n"


def test_a_command_outlives_its_agent(lab):
    """As under sshd: the command is left with an input that ended."""
    agent = subprocess.Popen([lab.agent, "host2", "echo started; cat; sleep 0.2; echo over > $TMPDIR/over"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert agent.stdout.readline() == "started\n"
    agent.kill()
    agent.wait()
    agent.stdin.close()
    end = time.monotonic() + 60
    while lab.run(2, ["sh", "-c", "test -f $TMPDIR/over"]).returncode != 0:
        assert time.monotonic() < end
    agent.stdout.close()


# --- faults --------------------------------------------------------------------------------------------------------


def test_a_cable_is_pulled(lab):
    lab.link(1, "down")
    assert lab.run(0, [PYTHON, "-c", SAY, "host1", "x", 0.5], capture_output=True).returncode == 1
    lab.link(1, "up")
    server = serve(lab, 1, lab.addresses[1])
    says(lab, 0, PYTHON, "-c", SAY, "host1", "again", 30)
    assert server.communicate(timeout=60)[0] == "again"


@pytest.mark.parametrize("state", ["mute", "deaf"])
def test_a_cable_with_one_direction(state):
    """What goes the one way is lost, and what goes the other way arrives."""
    hear = "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.bind(('', 5002))\nprint('up', flush=True)\n" \
           "print(s.recv(10).decode())"
    tell = "import socket, sys\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(sys.argv[2].encode(), (sys.argv[1], 5002))"
    with Lab(hosts=3) as lab:
        # Host 0 speaks to host 1 through the cable that has one direction, or hears it.
        speaker, listener = (0, 1) if state == "mute" else (1, 0)
        heard = {host: lab.popen(host, [PYTHON, "-c", hear], stdout=subprocess.PIPE, text=True) for host in range(3)}
        assert all(process.stdout.readline() == "up\n" for process in heard.values())
        lab.link(0, state)
        says(lab, speaker, PYTHON, "-c", tell, f"host{listener}", "lost")
        says(lab, listener, PYTHON, "-c", tell, f"host{speaker}", "arrives")
        says(lab, 1, PYTHON, "-c", tell, "host2", "arrives")
        assert heard[speaker].communicate(timeout=60)[0] == heard[2].communicate(timeout=60)[0] == "arrives\n"
        lab.link(0, "up")
        says(lab, speaker, PYTHON, "-c", tell, f"host{listener}", "again")
        assert heard[listener].communicate(timeout=60)[0] == "again\n"


def test_power_is_lost():
    with Lab(hosts=2) as lab:
        sleeper = lab.popen(1, ["sleep", "100"], stderr=subprocess.PIPE, text=True)
        while "sleep" not in says(lab, 1, "sh", "-c", "cat /proc/[0-9]*/comm"):
            pass
        lab.off(1)
        assert "host 1 of lab" in sleeper.communicate(timeout=60)[1] and sleeper.returncode == 1
        done = lab.run(1, ["true"], capture_output=True, text=True)
        assert done.returncode == 1 and "does not answer" in done.stderr
        assert says(lab, 0, "hostname") == "host0\n"
    assert nothing_left(lab)


# --- the end -------------------------------------------------------------------------------------------------------

OWNER = f"""
import os, sys, time
sys.path.insert(0, {str(LAB)!r})
from lab import Lab
with Lab(hosts=2, share=0.5, name=sys.argv[1]) as lab:
    sleeper = lab.popen(1, ["setsid", "sleep", "1000"])
    lab.popen(0, ["sh", "-c", "trap '' TERM INT HUP; sleep 1000 & sleep 1000"])
    print("up", flush=True)
    if sys.argv[2] == "raise":
        raise RuntimeError("on purpose")
    time.sleep(1000)
"""


@pytest.mark.parametrize("how", ["raise", signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_a_lab_whose_owner_ended(how):
    lab = Lab(hosts=2)  # for its name only
    # A shell may have started the tests with SIGINT ignored, which processes inherit.
    owner = subprocess.Popen([PYTHON, "-c", OWNER, lab.name, str(how)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    assert owner.stdout.readline() == "up\n", owner.communicate()
    assert processes_of(lab.name)
    if how != "raise":
        owner.send_signal(how)
    owner.communicate(timeout=60)
    assert owner.returncode != 0
    assert nothing_left(lab)


def test_a_keeper_that_is_killed_takes_its_hosts_along():
    with Lab(hosts=2, share=0.5) as lab:
        sleeper = lab.popen(1, ["sleep", "1000"], stderr=subprocess.DEVNULL)
        while "sleep" not in says(lab, 1, "sh", "-c", "cat /proc/[0-9]*/comm"):
            pass
        lab.keeper.kill()
        assert sleeper.wait(60) == 1
    assert nothing_left(lab)


def test_tcp_is_controlled_alike_on_every_machine():
    for options, expected in ({}, default_congestion()), ({"congestion": "reno"}, "reno"):
        with Lab(hosts=1, **options) as lab:
            assert says(lab, 0, "cat", "/proc/sys/net/ipv4/tcp_congestion_control").strip() == expected


def test_command_line():
    name = Lab().name
    assert lab_tool("up", name, "--hosts", 2, "--rate", "50mbit", "--share", 0.3, "--mtu", 9000).returncode == 0
    try:
        assert f"{name}: 2 hosts, 50mbit, bursts of 16384 bytes, 0.3 processors each, MTU 9000, TCP with {default_congestion()}" in lab_tool("list").stdout
        again = lab_tool("up", name)
        assert again.returncode == 1 and f"there is a lab '{name}' already" in again.stderr
        assert lab_tool("exec", name, "host1", "--", "hostname").stdout == "host1\n"
        for words, message in [(("exec", name, "host2", "true"), "has no host 'host2': it has host0 to host1"),
                               (("exec", name, "host0"), "exec expects a command"),
                               (("exec", name, "host0", "no-such-program"), "there is no program 'no-such-program'"),
                               (("link", name, "9", "up"), "has no host '9'"), (("off", name, "x"), "has no host 'x'")]:
            done = lab_tool(*words)
            assert done.returncode == 1 and message in done.stderr, done
    finally:
        assert lab_tool("down", name).returncode == 0
    gone = lab_tool("down", name)
    assert gone.returncode == 1 and f"there is no lab '{name}'" in gone.stderr
    assert nothing_left(Lab(name=name))


@pytest.mark.parametrize("words,message", [
    ((), "required: COMMAND"), (("sideways",), "invalid choice: 'sideways'"), (("up",), "required: name"),
    (("up", "UP"), "a lab's name is 1 to 32 small letters"), (("up", "../x"), "a lab's name is"),
    (("up", "a" * 33), "a lab's name is"),
    (("up", "x", "--hosts", 0), "1 to 64 hosts, got 0"), (("up", "x", "--hosts", 65), "1 to 64 hosts"),
    (("up", "x", "--hosts", "two"), "invalid int value: 'two'"), (("up", "x", "--rate", "fast"), "got 'fast'"),
    (("up", "x", "--rate", "1mbyte"), "a rate is a whole number and"), (("up", "x", "--rate", "0gbit"), "a rate is"),
    (("up", "x", "--rate", "200gbit"), "from 100kbit to 100gbit"), (("up", "x", "--burst", 100), "a burst is from 2048"),
    (("up", "x", "--share", -1), "a share is from 0.02"), (("up", "x", "--share", "nan"), "a share is from"),
    (("up", "x", "--mtu", 100), "an MTU is from 576"),
    (("up", "x", "--congestion", "a b"), "congestion control is a name of this system"),
    (("up", "x", "--congestion", "nonsense"), "TCP cannot control congestion by nonsense here, only by "),
    (("up", "x", "--color", "red"), "unrecognized arguments"),
    (("exec", "nolab", "0", "true"), "there is no lab 'nolab'"), (("link", "nolab", "0", "up"), "there is no lab 'nolab'"),
    (("link", "nolab", "0", "sideways"), "invalid choice: 'sideways'"), (("down", "nolab"), "there is no lab 'nolab'")])
def test_wrong_arguments(words, message):
    done = lab_tool(*words)
    assert done.returncode in (1, 2, 77) and message in done.stderr, done
    assert "Traceback" not in done.stderr


def test_where_hosts_cannot_be_made(monkeypatch):
    with pytest.raises(LabError, match="1 to 64 hosts"):
        Lab(hosts=0)
    monkeypatch.setattr(keeper, "PATH", "")
    with pytest.raises(LabUnavailable, match="'ip' is not installed"):
        keeper.check_machine()
    monkeypatch.undo()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LabUnavailable, match="need root"):
        keeper.check_machine()


def test_a_tool_that_refuses_means_skipped(tmp_path):
    """The reason is the tool's, and the exit status that of a test that is skipped."""
    unshare = tmp_path / "unshare"
    unshare.write_text("#!/bin/sh\necho 'unshare: unshare failed: Operation not permitted' >&2; exit 1\n")
    unshare.chmod(0o755)
    done = lab_tool("check", env=dict(os.environ, PATH=f"{tmp_path}:{os.environ['PATH']}"))
    assert done.returncode == UNAVAILABLE, done
    assert "skipped: no network namespaces can be made here: unshare: unshare failed: Operation not permitted" in done.stderr
    assert lab_tool("check", "--share", 0.5).stdout == "test hosts can be made here\n"


# --- the table -----------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_table(tmp_path):
    """All runners that can run here, on few bytes; the figures themselves are not judged."""
    figures = tmp_path / "figures.json"
    done = lab_tool("table", "--hosts", 2, "--rates", "1gbit", "--ranks", 2, "--sizes", "1KiB,64KiB", "--json", figures)
    left_out = done.stderr.count("is left out")
    if left_out == 3:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done
    rows = json.loads(figures.read_text())["rows"]
    # Two settings, three operations, two sizes.
    assert len(rows) == (3 - left_out) * 2 * 3 * 2
    assert all(row["median_s"] > 0 and (row["processor_share"] or 0) >= 0 for row in rows)
    assert "2 hosts at 1gbit, 1 rank each, bursts of 125000 bytes" in done.stdout and "2 ranks on this host" in done.stdout


@pytest.mark.parametrize("words,message", [
    (("--hosts", "1"), "expects numbers from 2 to 16, got '1'"), (("--hosts", "x"), "expects numbers from 2 to 16, got 'x'"),
    (("--rates", "fast"), "got 'fast'"), (("--sizes", "100KB"), "got '100KB'"), (("--sizes", "2048MiB"), "got '2048MiB'"),
    (("--operations", "all_to_all"), "expects some of all_reduce, all_gather, reduce_scatter, got 'all_to_all'"),
    (("--runners", "nccl"), "expects some of braid, gloo, openmpi, got 'nccl'"), (("--share", "-1"), "a share is from 0.02")])
def test_wrong_arguments_of_the_table(words, message):
    done = lab_tool("table", *words)
    assert done.returncode in (1, 2, 77) and message in done.stderr and "Traceback" not in done.stderr, done
