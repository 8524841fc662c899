# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs and states that only the process of rank 0 has, and results that it puts together."""
import numpy as np
import pytest

from braidtest import BAD_INPUT, BIN, braid, braid_run

pytestmark = pytest.mark.usefixtures("ucx")


def run_on(lab, bundle, *words, program="braid-run", expect=0):
    command = [BIN / program, *(["run"] if program == "braid" else []), bundle, "--hosts", ",".join(lab.addresses), "--agent", lab.agent,
               "--time-limit", 60, *words]
    done = lab.run(0, [str(word) for word in command], capture_output=True, text=True, timeout=180)
    assert done.returncode == expect, done.stdout + done.stderr
    return done


def only_on_the_first(lab, folder):
    """A folder whose content host 1 does not see."""
    done = lab.run(1, ["mount", "-t", "tmpfs", "none", str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_only_rank_zero_has_the_files(two_hosts, bundle_of, tmp_path):
    bundle = bundle_of("generation.py")
    folder = tmp_path / "files"
    folder.mkdir()
    random = ["--random-weights", 3]
    # What an entry takes and gives, by its names and shapes.
    braid_run(bundle, "--entry", "prefill", *random, "--random-inputs", 1, "--output", folder / "prefilled")
    only_on_the_first(two_hosts, folder)
    states = ["--state", folder / "prefilled"]
    braid_run(bundle, "--entry", "decode", *random, *states, "--random-inputs", 2, "--output", tmp_path / "threads")
    run_on(two_hosts, bundle, "--entry", "decode", *random, *states, "--random-inputs", 2, "--repeat", 2, "--inputs-from", 0, "--output",
           folder / "hosts")
    for path in (tmp_path / "threads").iterdir():
        assert (folder / "hosts" / path.name).read_bytes() == path.read_bytes(), path
    # Without the option host 1 needs them, too.
    err = run_on(two_hosts, bundle, "--entry", "decode", *random, *states, "--random-inputs", 2, expect=BAD_INPUT).stderr
    assert "[1@10.77.0.2]" in err and "prefilled" in err


def test_inputs_of_rank_zero(two_hosts, bundle_of, tmp_path):
    bundle = bundle_of("chunks.mlir")
    folder = tmp_path / "files"
    folder.mkdir()
    only_on_the_first(two_hosts, folder)
    need = braid_run(bundle, "--random-weights", 1, expect=BAD_INPUT).err
    name, shape = need.split("--input ")[1].split("=")[0], need.split("with f32 ")[1].split("\n")[0].split("]")[0] + "]"
    np.save(folder / "x.npy", np.random.default_rng(1).standard_normal(eval(shape)).astype(np.float32))
    given = ["--random-weights", 1, "--input", f"{name}={folder / 'x.npy'}"]
    braid_run(bundle, *given, "--output", tmp_path / "threads")
    done = run_on(two_hosts, bundle, *given, "--inputs-from", 0, "--check", "reference", "--output", folder / "hosts", program="braid")
    assert ": passed" in done.stdout
    for path in (tmp_path / "threads").iterdir():
        assert (folder / "hosts" / path.name).read_bytes() == path.read_bytes(), path
    np.save(folder / "x.npy", np.zeros((1, 2, 3), np.float32))
    err = run_on(two_hosts, bundle, *given, "--inputs-from", 0, expect=BAD_INPUT).stderr
    assert f"input '{name}' expects" in err and "[1, 2, 3]" in err


def test_the_option():
    assert "--inputs-from" in braid("run", "--help").out
    err = braid_run("none.braid", "--inputs-from", 1, expect=BAD_INPUT).err
    assert "--inputs-from" in err
