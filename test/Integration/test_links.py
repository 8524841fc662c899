# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Links between test hosts: that messages arrive, how fast they are beside iperf3, and who is named when a host is cut
off or loses its power."""
import json
import shutil
import subprocess
import sys
import time

import pytest

import braidtest

sys.path.insert(0, str(braidtest.ROOT / "test" / "lab"))
from lab import Lab, LabUnavailable  # noqa: E402

PROBE = braidtest.BIN / "braid-test-link"
PORT = 4711


@pytest.fixture(scope="module", autouse=True)
def hosts_can_be_made():
    try:
        with Lab(hosts=1):
            pass
    except LabUnavailable as error:
        pytest.skip(f"no test hosts here: {error}")


def start(lab, host, *words, size=2, limit=30):
    """A process of a job, whose rank is the number of its host."""
    return lab.popen(host, [PROBE, "--rendezvous", f"tcp://{lab.addresses[0]}:{PORT}", "--rank", host, "--size", size,
                            "--secret", "a secret of this test", "--limit", limit, *words],
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def speeds(lab, *words):
    processes = [start(lab, host, "speed", *words, limit=60) for host in range(2)]
    outputs = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    return json.loads(outputs[0][0])


def iperf(lab):
    """Megabytes a second, or None where iperf3 is not installed."""
    if not shutil.which("iperf3"):
        return None
    server = lab.popen(1, ["iperf3", "-s", "-1"], stdout=subprocess.DEVNULL)
    try:
        for _ in range(50):
            done = lab.run(0, ["iperf3", "-c", lab.addresses[1], "-t", 3, "-J"], capture_output=True, text=True, timeout=60)
            # It may leave 0 when its server does not answer yet.
            received = json.loads(done.stdout)["end"].get("sum_received") if done.returncode == 0 else None
            if received:
                return received["bits_per_second"] / 8e6
            time.sleep(0.1)
        raise AssertionError(done.stdout)
    finally:
        server.kill()
        server.wait()


@pytest.mark.long
@pytest.mark.parametrize("rate", ["100mbit", "1gbit"])
def test_speed_of_messages(rate, capsys):
    with Lab(hosts=2, rate=rate) as lab:
        megabytes = "1048576,8388608,67108864" if rate == "1gbit" else "1048576,8388608"
        results = speeds(lab, "--bytes", f"4096,{megabytes}", "--rounds", "3")
        reference = iperf(lab)
    with capsys.disabled():
        print(f"\n{rate}: " + ("iperf3 is not here" if reference is None else f"iperf3 {reference:.1f} MB/s"))
        for row in results:
            print(f"  {row['bytes']:>9} bytes, {'both ways at once' if row['both_ways'] else 'one way':17} "
                  f"{row['seconds'] * 1e6:>10.0f} us {row['megabytes_per_s']:>7.1f} MB/s, "
                  f"{100 * row['processor_s_per_round'] / row['seconds'] / (1 if row['both_ways'] else 2):.1f} % of a processor")
    assert len(results) == 2 * (1 + megabytes.count(",") + 1)


def test_a_slow_link_does_not_wake_a_thread_for_every_packet():
    size = 2 << 20
    with Lab(hosts=2, rate="50mbit", burst=4096) as lab:
        one_way = speeds(lab, "--bytes", size, "--rounds", 1)[0]
    # A message there and back, of whose packets each would wake the thread that receives it.
    assert not one_way["both_ways"] and one_way["sleeps_per_round"] < 0.4 * size / 1448, one_way


@pytest.mark.parametrize("rate", [100, 200])
def test_calibration_finds_what_links_have(rate, tmp_path):
    """Bandwidths are what the hosts' links were set to, in each direction and to all peers together."""
    machine = tmp_path / "machine.json"
    with Lab(hosts=3, rate=f"{rate}mbit", share=0.6) as lab:
        done = lab.run(0, [str(braidtest.BIN / "braid"), "calibrate", "--links", "--hosts", "host0,host1,host2", "--agent",
                           lab.agent, "-o", str(machine)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(machine.read_text())["links"]
    assert len(found) == 1
    link = found[0]
    payload = rate * 1e6 / 8 * 0.956  # Ethernet's and TCP's headers count, too
    assert link["bytes_per_second"] == pytest.approx(payload, rel=0.05), done.stdout
    # The acknowledgements of the other direction go the same way.
    assert 0.85 * payload < link["both_ways_bytes_per_second"] < 1.03 * payload, done.stdout
    # Three hosts share the card of one: the rate is that of the card, not of two links.
    assert link["host_bytes_per_second"] == pytest.approx(payload, rel=0.05), done.stdout
    exchanges = link["exchanges"]
    assert [point["bytes"] for point in exchanges] == [8, 1 << 10, 2 << 10, 4 << 10, 16 << 10]
    assert 0 < link["latency_seconds"] <= exchanges[0]["seconds"] <= exchanges[-1]["seconds"] < 0.01
    assert link["processor_bytes_per_second"] > payload
    assert 1 <= link["compute_slowdown"] < 20 and 1 <= link["communication_slowdown"] < 20, done.stdout
    # Behind other work, an exchange takes at most as long as it takes to wake a host that has a part of a core.
    cold = link["cold"]
    assert [(point["between_bytes"], point["bytes"]) for point in cold] == [
        (between, size) for between in (1 << 19, 1 << 21, 1 << 23, 1 << 26) for size in (8, 16 << 10)]
    for size in 8, 16 << 10:
        of_size = [point["seconds"] for point in cold if point["bytes"] == size]
        assert sorted(of_size) == of_size, done.stdout
    assert all(0 <= point["seconds"] < 0.05 for point in cold), done.stdout
    seconds = [message["seconds"] for message in link["messages"]]
    assert seconds == sorted(seconds)
    largest = link["messages"][-1]
    assert largest["bytes"] / largest["seconds"] == pytest.approx(payload, rel=0.05), done.stdout


def watch(lab, size, limit):
    processes = [start(lab, host, "watch", size=size, limit=limit) for host in range(size)]
    for process in processes:
        assert process.stdout.readline() == "started\n", process.communicate()
    return processes


def said(process):
    out, err = process.communicate(timeout=60)
    return out.strip() or err


def test_a_host_that_is_cut_off_is_named():
    with Lab(hosts=3) as lab:
        processes = watch(lab, 3, 2)
        lab.link(2, "down")
        for process in processes[:2]:
            assert said(process).startswith("rank 2 (host2) has not been heard of for 2."), said(process)
        # The host that is cut off names one of the others.
        assert "has not been heard of for 2." in said(processes[2])


def test_a_host_without_power_is_named():
    with Lab(hosts=3) as lab:
        processes = watch(lab, 3, 2)
        lab.off(1)
        for process in (processes[0], processes[2]):
            assert said(process).startswith("rank 1 (host1) has not been heard of for 2.")
        processes[1].kill()
        processes[1].wait()


def test_a_host_that_is_never_reached_is_missing():
    with Lab(hosts=2) as lab:
        lab.link(1, "down")
        processes = [start(lab, host, "watch", limit=2) for host in range(2)]
        place = f"tcp://{lab.addresses[0]}:{PORT}"
        assert said(processes[0]) == f"braid-test-link: error: rank 1 of 2 has not come to {place} within 2.0 s\n"
        assert said(processes[1]).startswith(f"braid-test-link: error: rank 1 cannot reach rank 0 at {place} within 2.0 s: ")
