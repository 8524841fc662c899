# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks that a launcher starts on this host, on test hosts, and by other launchers: what they know, and how they end."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

import braidtest
from braidtest import of_process

sys.path.insert(0, str(braidtest.ROOT / "test" / "lab"))
from lab import Lab, LabUnavailable  # noqa: E402

PROBE = braidtest.BIN / "braid-test-launch-probe"
RANK_FAILED = braidtest.RANK_FAILED
LINE = re.compile(r"(?:\[(?P<number>\d+)@(?P<on>[^]]+)\] )?rank (?P<rank>\d+) of (?P<size>\d+), started by (?P<by>.+); "
                  r"local (?P<local>-?\d+) of (?P<locals>-?\d+); at (?P<place>.+); host (?P<host>.+); in (?P<directory>.+); "
                  r"secret of (?P<secret>\d+) characters, (?P<shown>.*); job (?P<job>.*)")


@pytest.fixture(scope="module")
def lab():
    try:
        with Lab(hosts=3, rate="1gbit") as made:
            yield made
    except LabUnavailable as error:
        pytest.skip(f"no test hosts here: {error}")


def probe(*words, within=None, timeout=60, **options):
    command = list(map(str, [PROBE, *words]))
    if within is not None:
        command = within[0].words(within[1], command)
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL,
                          **options)


def ranks(done):
    assert done.returncode == 0, done
    return sorted((match.groupdict() for match in map(LINE.fullmatch, done.stdout.splitlines()) if match),
                  key=lambda found: int(found["rank"]))


def marked(mark):
    """Processes that have this text on their command lines."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        stat = of_process(path.name, "stat")
        if stat and stat.rsplit(")", 1)[1].split()[0] != "Z" and mark in of_process(path.name, "cmdline"):
            found.append(int(path.name))
    return found


def none_left(mark, seconds=60):
    end = time.monotonic() + seconds
    while marked(mark) and time.monotonic() < end:
        time.sleep(0.01)
    return not marked(mark)


@pytest.fixture
def mark(request):
    """A text for the command lines of ranks, so that those of this test can be counted."""
    text = f"mark-{os.getpid()}-{abs(hash(request.node.name)) % 10**9}"
    yield text
    assert none_left(text, 10), "the launcher left processes behind"


def agent_of(lab):
    return ["--agent", lab.agent]


# --- what ranks know -----------------------------------------------------------------------------------------------


def test_ranks_on_this_host(tmp_path):
    found = ranks(probe("--hosts", "localhost:3", cwd=tmp_path))
    assert [int(rank["rank"]) for rank in found] == [0, 1, 2]
    for i, rank in enumerate(found):
        assert rank["number"] == str(i) and rank["on"] == "localhost" and rank["by"] == "Braid"
        assert (rank["size"], rank["local"], rank["locals"]) == ("3", str(i), "3")
        assert rank["directory"] == str(tmp_path) and rank["secret"] == "64" and rank["shown"] == "not shown"
    assert len({(rank["place"], rank["job"]) for rank in found}) == 1
    assert re.fullmatch(r"tcp://127.0.0.1:\d+", found[0]["place"])


@pytest.mark.parametrize("from_host", [None, 0])
def test_ranks_on_test_hosts(lab, tmp_path, from_host):
    done = probe("--hosts", "host0,host1:2,root@10.77.0.3", *agent_of(lab), cwd=tmp_path,
                 within=None if from_host is None else (lab, from_host))
    found = ranks(done)
    assert [(rank["rank"], rank["on"], rank["host"], rank["local"], rank["locals"]) for rank in found] == [
        ("0", "host0", "host0", "0", "1"), ("1", "host1", "host1", "0", "2"), ("2", "host1", "host1", "1", "2"),
        ("3", "10.77.0.3", "host2", "0", "1")]
    assert len({(rank["place"], rank["job"], rank["secret"], rank["directory"]) for rank in found}) == 1
    assert re.fullmatch(r"tcp://host0:\d+", found[0]["place"]) and found[0]["directory"] == str(tmp_path)
    assert {rank["shown"] for rank in found} == {"not shown"}


def test_hosts_by_ipv6_and_a_given_place(lab):
    address = lab.addresses6[1]
    found = ranks(probe("--hosts", f"[{address}]:2,host2", *agent_of(lab), "--rendezvous", "file:/shared/meet"))
    assert [rank["host"] for rank in found] == ["host1", "host1", "host2"]
    assert {rank["place"] for rank in found} == {"file:/shared/meet"}
    found = ranks(probe("--hosts", f"[{address}],host2", *agent_of(lab)))
    assert re.fullmatch(rf"tcp://\[{address}\]:\d+", found[0]["place"])


def test_secret_is_on_no_command_line(lab, mark):
    launcher = subprocess.Popen([PROBE, "--hosts", "host0,host1", *agent_of(lab), "hang", f"print:{mark}"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(2):
        launcher.stdout.readline()
    secrets = set()
    for pid in marked(mark):
        variables = of_process(pid, "environ").split("\0")
        secrets |= {variable.split("=", 1)[1] for variable in variables if variable.startswith("BRAID_JOB_SECRET=")}
    assert len(secrets) == 1
    secret = secrets.pop()
    lines = [line for path in pathlib.Path("/proc").glob("[0-9]*") if (line := of_process(path.name, "cmdline"))]
    assert len(lines) > 4 and not any(secret in line for line in lines)
    launcher.terminate()
    launcher.communicate(timeout=60)
    assert launcher.returncode == 128 + signal.SIGTERM


def test_jobs_have_secrets_and_ports_of_their_own():
    first, second = (ranks(probe("--hosts", "localhost"))[0] for _ in range(2))
    assert first["job"] != second["job"]


def test_variables_that_go_along(lab, monkeypatch):
    monkeypatch.setenv("BRAID_TEST_GOES", "a b'c")
    monkeypatch.setenv("OTHER_TEST_STAYS", "x")
    monkeypatch.setenv("BRAID_JOB_SECRET", "stale")
    monkeypatch.setenv("BRAID_RANK", "7")
    launcher = subprocess.Popen([PROBE, "--hosts", "host1", *agent_of(lab), "hang"], stdout=subprocess.PIPE, text=True)
    assert "rank 0 of 1" in launcher.stdout.readline()
    rank = next(pid for pid in marked(str(PROBE)) if "TESTLAB_HOST=1" in of_process(pid, "environ")
                and "hang" in of_process(pid, "cmdline"))
    variables = of_process(rank, "environ").split("\0")
    assert "BRAID_TEST_GOES=a b'c" in variables and "BRAID_RANK=0" in variables
    assert not [variable for variable in variables if variable.startswith(("OTHER_TEST", "BRAID_JOB_SECRET=stale"))]
    launcher.terminate()
    launcher.communicate(timeout=60)


# --- output --------------------------------------------------------------------------------------------------------


def test_lines_have_rank_and_host():
    done = probe("--hosts", "localhost:2", "print:one\ntwo@1", "error:three@0", "partial:no end@1")
    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if line.startswith("[1@")][1:] == [
        "[1@localhost] one", "[1@localhost] two", "[1@localhost] no end"]
    assert done.stderr == "[0@localhost] three\n"


def test_much_output():
    done = probe("--hosts", "localhost:2", "long:300000", *(f"print:{i}" for i in range(2000)))
    for rank in range(2):
        lines = [line.partition("] ")[2] for line in done.stdout.splitlines() if line.startswith(f"[{rank}@")][1:]
        count = next(i for i, line in enumerate(lines) if not line.startswith("x"))
        assert sum(map(len, lines[:count])) == 300000
        assert lines[count:] == [str(i) for i in range(2000)]


def test_what_a_login_shell_prints(lab, tmp_path):
    chatty = tmp_path / "chatty"
    chatty.write_text("#!/bin/sh\necho welcome\necho '@braid ready 0 1'\nprintf 'no end of line'\n"
                      f"exec {lab.agent} \"$@\"\n")
    chatty.chmod(0o755)
    done = probe("--hosts", "host1,host2", "--agent", chatty)
    assert [rank["host"] for rank in ranks(done)] == ["host1", "host2"], done
    assert {f"[host{i}] {text}" for i in (1, 2) for text in ("welcome", "@braid ready 0 1", "no end of line")} == set(
        done.stderr.splitlines())


# --- ends ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [1, 2, 7, 255])
def test_exit_status_of_the_first_failure(lab, mark, status):
    done = probe("--hosts", "host0:2,host1", *agent_of(lab), f"print:{mark}", f"exit:{status}@2", "hang")
    assert done.returncode == status
    assert f"probe: error: rank 2 on host 'host1' ended with status {status}" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_rank_is_ended_by_a_signal(lab, mark, number):
    done = probe("--hosts", "host0,host1", *agent_of(lab), f"print:{mark}", f"signal:{int(number)}@1", "hang")
    assert done.returncode == RANK_FAILED
    assert f"rank 1 on host 'host1' was ended by signal {int(number)} (" in done.stderr


def test_ranks_that_ignore_sigterm_are_killed(lab, mark):
    done = probe("--hosts", "host0,host1,localhost", "--grace", 1, *agent_of(lab), "ignore-term", f"print:{mark}", "sleep:0.5@1",
                 "exit:5@1", "hang")
    assert done.returncode == 5 and "rank 1 on host 'host1' ended with status 5" in done.stderr


def test_what_ranks_leave_behind_ends(lab, mark):
    done = probe("--hosts", "host0,localhost", *agent_of(lab), f"print:{mark}", "child")
    assert done.returncode == 0, done


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("stubborn", [False, True])
def test_the_launcher_is_asked_to_end(lab, mark, number, stubborn):
    launcher = subprocess.Popen([PROBE, "--hosts", "host0,host1", "--grace", "1", *agent_of(lab),
                                 "ignore-term" if stubborn else f"report:{int(number)}", f"print:{mark}", "hang"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(4):  # who it is, and the mark
        launcher.stdout.readline()
    launcher.send_signal(number)
    out, err = launcher.communicate(timeout=60)
    assert launcher.returncode == 128 + number and f"ended by signal {int(number)}" in err
    if not stubborn:
        assert sorted(out.splitlines()) == [f"[{i}@host{i}] got signal {int(number)}" for i in range(2)]


def test_signals_that_do_not_end_the_launcher(lab, mark):
    launcher = subprocess.Popen([PROBE, "--hosts", "host0,host1", *agent_of(lab), f"report:{int(signal.SIGUSR1)}",
                                 f"print:{mark}", "hang"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(4):
        launcher.stdout.readline()
    launcher.send_signal(signal.SIGUSR1)
    out, err = launcher.communicate(timeout=60)
    assert launcher.returncode == 0 and out.count(f"got signal {int(signal.SIGUSR1)}") == 2, err


def test_twice_asked_is_at_once(lab, mark):
    launcher = subprocess.Popen([PROBE, "--hosts", "host0,localhost", "--grace", "1000", *agent_of(lab), "ignore-term",
                                 f"print:{mark}", "hang"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(4):
        launcher.stdout.readline()
    launcher.terminate()
    time.sleep(0.2)
    launcher.terminate()
    launcher.communicate(timeout=60)
    assert launcher.returncode == 128 + signal.SIGTERM


@pytest.mark.parametrize("stubborn", [False, True])
def test_the_launcher_is_killed(lab, mark, stubborn):
    launcher = subprocess.Popen([PROBE, "--hosts", "host0:2,localhost,host1", "--grace", "1", *agent_of(lab),
                                 *(["ignore-term"] if stubborn else []), "child", f"print:{mark}", "hang"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(8):
        launcher.stdout.readline()
    assert len(marked(mark)) >= 8
    launcher.kill()
    launcher.communicate(timeout=60)
    assert none_left(mark)


def test_a_starter_is_killed(lab, mark):
    """The kernel kills its ranks, and the launcher says which host it was."""
    launcher = subprocess.Popen([PROBE, "--hosts", "host0,host1:2", "--grace", "1", *agent_of(lab), f"print:{mark}", "hang"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(6):
        launcher.stdout.readline()
    starters = [pid for pid in marked("--start-ranks")
                if "TESTLAB_HOST=1" in of_process(pid, "environ")
                and "braid-test-launch-probe" in of_process(pid, "cmdline").split("\0")[0]]
    assert len(starters) == 1
    os.kill(starters[0], signal.SIGKILL)
    _, err = launcher.communicate(timeout=60)
    assert launcher.returncode == RANK_FAILED
    assert f"host 'host1': agent '{lab.agent}' ended with status 137 while ranks ran" in err, err


def test_a_host_loses_its_power(mark):
    try:
        with Lab(hosts=2) as own:
            launcher = subprocess.Popen([PROBE, "--hosts", "host0,host1", *agent_of(own), f"print:{mark}", "hang"],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(4):
                launcher.stdout.readline()
            own.off(1)
            _, err = launcher.communicate(timeout=60)
            assert launcher.returncode == RANK_FAILED and "host 'host1': agent" in err, err
            assert none_left(mark)
    except LabUnavailable as error:
        pytest.skip(f"no test hosts here: {error}")


# --- starts that fail ----------------------------------------------------------------------------------------------


def test_no_rank_starts_where_a_host_is_missing(lab, tmp_path):
    for hosts, agent, message in [
            ("host0,host9", lab.agent, f"host 'host9': agent '{lab.agent}' ended with status 255, and said: agent: could not "
                                       "resolve hostname host9"),
            ("host0", "no-such-agent", "host 'host0': cannot run 'no-such-agent': No such file or directory"),
            ("host0", "/", "host 'host0': cannot run '/': Permission denied"),
            ("host0,host1", "false", "agent 'false' ended with status 1"),
            ("localhost,host1", lab.agent, "rank 0 is on 'localhost', by which name other hosts do not find it"),
            ("host0:0", lab.agent, "expects 1 to 65536 ranks on host 'host0', got '0'"),
            ("-oProxyCommand=touch", lab.agent, "expects hosts as HOST, HOST:RANKS")]:
        done = probe("--hosts", hosts, "--agent", agent)
        assert done.returncode == 1 and message in done.stderr and "rank 0 of" not in done.stdout, done


@pytest.mark.skipif(not shutil.which("ssh"), reason="there is no ssh here")
def test_ssh_and_a_name_that_does_not_resolve():
    done = probe("--hosts", "no-such-host.invalid")
    assert done.returncode == 1, done
    assert "host 'no-such-host.invalid': agent 'ssh' ended with status 255, and said: ssh:" in done.stderr


def test_directory_or_program_that_hosts_lack(lab, tmp_path):
    """Test hosts have the machine's files, so an agent takes them away."""
    gone = tmp_path / "gone"
    gone.mkdir()
    hiding = tmp_path / "hiding"
    hiding.write_text(f"#!/bin/sh\nrmdir {gone} 2>/dev/null\nexec {lab.agent} \"$@\"\n")
    hiding.chmod(0o755)
    done = probe("--hosts", "host0", "--agent", hiding, cwd=gone)
    assert done.returncode == 1 and f"host 'host0': cannot work in directory '{gone}'" in done.stderr, done
    hiding.write_text(f"#!/bin/sh\nhost=$1; shift\nexec {lab.agent} $host \"exec '/nowhere/braid'\"\n")
    done = probe("--hosts", "host0", "--agent", hiding)
    assert done.returncode == 1, done
    assert "ended with status 127" in done.stderr and "at the same path on all hosts" in done.stderr


def test_an_agent_that_hangs(tmp_path, mark):
    """It does not react to the end of its input either."""
    hang = tmp_path / f"hang-{mark}"
    hang.write_text("#!/bin/sh\ntrap '' TERM HUP INT\nwhile true; do sleep 0.05; done\n")
    hang.chmod(0o755)
    done = probe("--hosts", "host0", "--start-limit", 1, "--grace", 0.1, "--agent", hang)
    assert done.returncode == RANK_FAILED and "host 'host0' was not ready within 1 s" in done.stderr, done


# --- other launchers -----------------------------------------------------------------------------------------------


@pytest.mark.torch
def test_torchrun():
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "3", "--no-python", str(PROBE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    found = ranks(done)
    assert [(rank["rank"], rank["local"], rank["by"]) for rank in found] == [(str(i), str(i), "torchrun") for i in range(3)]
    assert len({rank["place"] for rank in found}) == 1 and re.fullmatch(r"tcp://localhost:\d+", found[0]["place"])


MPIRUN = [shutil.which("mpirun") or "mpirun", "--allow-run-as-root", "--oversubscribe"]


def open_mpi():
    if not shutil.which("mpirun"):
        return False
    return "Open MPI" in subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout


@pytest.mark.skipif(not open_mpi(), reason="there is no Open MPI here")
def test_mpirun():
    found = ranks(subprocess.run([*MPIRUN, "-n", "3", PROBE], capture_output=True, text=True, timeout=120, check=False))
    assert [(rank["rank"], rank["local"], rank["by"]) for rank in found] == [(str(i), str(i), "Open MPI") for i in range(3)]
    assert len({rank["place"] for rank in found}) == 1 and re.fullmatch(r"tcp://127.0.0.1:\d+", found[0]["place"])


@pytest.mark.skipif(not open_mpi(), reason="there is no Open MPI here")
def test_mpirun_over_test_hosts(lab):
    def run(*words):
        command = [*MPIRUN, "-n", "3", "--host", ",".join(lab.addresses), "--mca", "plm_rsh_agent", lab.agent,
                   "--mca", "oob_tcp_if_include", "10.77.0.0/24", *words]
        return lab.run(0, command, capture_output=True, text=True, timeout=120)
    done = run(PROBE)
    assert done.returncode == 1 and "Open MPI does not say where rank 0 is: give --rendezvous" in done.stderr, done
    found = ranks(run("-x", f"MASTER_ADDR={lab.addresses[0]}", PROBE))
    assert [rank["host"] for rank in found] == lab.names
    assert len({rank["place"] for rank in found}) == 1 and found[0]["place"].startswith("tcp://10.77.0.1:")


# --- braid run -----------------------------------------------------------------------------------------------------


def test_a_model_runs_on_another_host(tiny, lab, tmp_path):
    for tool, model in (["braid-run"], tiny.bundle("tp=2")), (["braid", "run"], tiny.model):
        done = braidtest.run(*tool, model, "--ranks", 2, *tiny.run_args(), "--transport", "shm", "--hosts", "host1",
                             *agent_of(lab), "--check", tiny.golden, "--output", tmp_path / tool[-1])
        assert re.search(r"^\[0@host1\] check .*passed$", done.out, re.MULTILINE), done
        assert (tmp_path / tool[-1] / "last_hidden_state.npy").exists()


def test_failures_on_another_host(tiny, lab):
    model = tiny.bundle("tp=2")
    done = braidtest.braid_run(model, *tiny.run_args(), "--hosts=host1", *agent_of(lab), "--transport", "pigeon", expect=1)
    assert "[0@host1] braid-run: error: " in done.err and "got 'pigeon'" in done.err
    assert done.err.splitlines()[-1] == "braid-run: error: rank 0 on host 'host1' ended with status 1"
    done = braidtest.braid_run(model, *tiny.run_args(), "--hosts", "host1", *agent_of(lab), "--transport", "shm", "--inject-stall",
                               1, "--time-limit", 1, expect=RANK_FAILED)
    assert "rank 0 on host 'host1' ended with status 3" in done.err


def test_ranks_of_other_processes_need_the_cores_too(tiny, tmp_path):
    """Two processes with a rank each spin for long on two cores, and not on one."""
    allowed = sorted(os.sched_getaffinity(0))
    spins = {}
    try:
        for cores in (1, 2):
            os.sched_setaffinity(0, allowed[:cores])
            braidtest.braid_run(tiny.bundle("tp=2"), *tiny.run_args(), "--hosts", "localhost:2", "--report", tmp_path / "report.json")
            report = json.loads((tmp_path / "report.json").read_text())
            spins[report["machine"]["usable_cores"]] = report["spin_s"]
    finally:
        os.sched_setaffinity(0, allowed)
    if set(spins) != {1, 2}:
        pytest.skip(f"expects two whole cores, got {spins}")
    assert spins[1] < spins[2]


def test_what_launchers_say(tiny, monkeypatch):
    model = tiny.bundle("tp=2")
    for variables, message in [
            ({"RANK": "x", "WORLD_SIZE": "2"}, "variable RANK expects a whole number"),
            ({"RANK": "0"}, "variable RANK is set without WORLD_SIZE")]:
        with monkeypatch.context() as patch:
            for variable, value in variables.items():
                patch.setenv(variable, value)
            assert message in braidtest.braid_run(model, *tiny.run_args(), expect=1).err
    with monkeypatch.context() as patch:  # one process is what it is without a launcher
        patch.setenv("RANK", "0")
        patch.setenv("WORLD_SIZE", "1")
        braidtest.braid_run(model, *tiny.run_args(), "--check", tiny.golden)


@pytest.mark.parametrize("words,message", [
    (["--agent", "ssh"], "--agent expects --hosts"), (["--hosts", "a", "--agent", " "], "--agent expects a program"),
    (["--hosts", "a,,b"], "--hosts: expects hosts as HOST, HOST:RANKS"), (["--hosts", ""], "--hosts: expects hosts"),
    (["--hosts", "a", "--rendezvous", "b"], "--rendezvous: expects a rendezvous as tcp://HOST:PORT"),
    (["--rendezvous", "b"], "--rendezvous: expects a rendezvous as"), (["--rendezvous", ""], "--rendezvous: expects"),
    (["--rendezvous", "tcp://a:1"], "nothing says which rank this process is"),
    (["--hosts", "a", "--agent", "no-such-agent"], "host 'a': cannot run 'no-such-agent'")])
def test_wrong_options(words, message):
    assert message in braidtest.braid_run("model.braid", *words, expect=1).err


def test_a_starter_without_a_launcher():
    done = subprocess.run([braidtest.BIN / "braid-run", "--start-ranks"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 1 and "the launcher is gone" in done.stdout
    for job in b"@braid job 0 2\n{}", b"@braid job 0 4\nnull", b"@braid start 0 0\n", b"@braid job 0 99999999999\n", b"@braid job\n", \
            b'@braid job 0 14\n{"protocol":2}', b"x" * 10000:
        done = subprocess.run([braidtest.BIN / "braid-run", "--start-ranks"], input=job, capture_output=True, timeout=60, check=False)
        assert done.returncode == 1 and b"fail 0" in done.stdout, done


def test_no_launcher():
    done = probe()
    assert done.returncode == 1 and "no launcher started this process" in done.stderr
