# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs of examples/programs: no copies, and the reference's results in every way to run them."""
import json
import re
import subprocess
import sys
import xml.etree.ElementTree

import pytest

from braidtest import BAD_INPUT, BUILD, ROOT, braid, run

FOLDER = ROOT / "examples/programs"
PROGRAMS = [path.name for path in sorted(FOLDER.glob("*.mlir"))]
RINGS = [f"ring.py {ranks}{way}" for ranks in (2, 3, 4, 5) for way in ("", " --both-ways")]
WEIGHTS = [f"weights.py {layers}{way}" for layers in (1, 4, 8) for way in ("", " --inside")]
WAYS = {"threads": ["--transport", "threads", "--repeat", 20], "shm": ["--transport", "shm", "--repeat", 20],
        "orders": ["--target", "program-interpreter", "--schedules", 100]}


@pytest.fixture(scope="module")
def module_of(tmp_path_factory):
    def path(name):
        script, *arguments = name.split()
        if not arguments:
            return FOLDER / name
        printed = subprocess.run([sys.executable, FOLDER / script, *arguments], capture_output=True, text=True, check=True).stdout
        out = tmp_path_factory.mktemp("program") / "program.mlir"
        out.write_text(printed)
        return out

    return path


def test_every_program_is_described():
    text = (FOLDER / "README.md").read_text()
    assert PROGRAMS
    for name in [*PROGRAMS, "ring.py", "weights.py", "pipeline.py", "generation.py"]:
        assert f"[`{name}`]({name})" in text
        picture = f"traces/{name.split('.')[0]}.svg"
        assert (FOLDER / picture).exists() and f"({picture})" in text


def test_draw_trace(module_of, tmp_path):
    braid("run", module_of("chunks.mlir"), "--random-weights", 1, "--random-inputs", 1, "--trace", tmp_path / "trace.json")
    draw = [sys.executable, FOLDER / "draw-trace.py"]
    subprocess.run([*draw, tmp_path / "trace.json", "-o", tmp_path / "trace.svg"], check=True)
    picture = xml.etree.ElementTree.parse(tmp_path / "trace.svg").getroot()
    texts = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {f"rank {rank} {queue}" for rank in (0, 1) for queue in ("compute", "communication")} <= set(texts)
    titles = [title.text for title in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert sum("@main/scatter.0" in title for title in titles) >= 2
    wrong = subprocess.run([*draw, FOLDER / "README.md"], capture_output=True, text=True)
    assert wrong.returncode == 1 and "is no trace that can be read" in wrong.stderr


@pytest.mark.parametrize("name", PROGRAMS + RINGS + WEIGHTS)
def test_no_copies(name, module_of):
    assert "rt.copy" not in braid("compile", module_of(name), "--emit=rt").out


@pytest.mark.parametrize("name", PROGRAMS + RINGS + WEIGHTS)
@pytest.mark.parametrize("way", WAYS)
def test_results(name, way, module_of):
    out = braid("run", module_of(name), "--random-weights", 1, "--random-inputs", 1, "--check", "reference", *WAYS[way]).out
    assert re.search(r"check y against reference: .*: passed", out), out
    if way == "orders":
        assert "order: no two commands that share memory are unordered" in out
        assert "100 orders of" in out


# What a rank sends, by hand: (n - 1) / n of the value in an all_gather or a reduce_scatter over n ranks, twice that in an
# all_reduce, a message as it is. And the frame of the entry: bytes of the local and of the symmetric arena.
BYTES = {
    "accumulate.mlir": (6 * 4 * 4, 0, 256),
    "between.mlir": (2 * 2 * 16, 0, 128),
    "chunks.mlir": (4 * 2 * 16 * 4 + 8 * 16 * 4, 1024, 1536),
    "context.mlir": ((2 * 6 * 4 * 8 + 2 * 2 * 6 * 4) * 4, 5120, 3456),
    "hierarchical.mlir": (3 * 4 * 16 * 4, 0, 896),
    "slices.mlir": (8 * 4 * 16 * 4, 1024, 1536),
    "ring.py 3": (2 * 4 * 16 * 4, 0, 512),
    "ring.py 4 --both-ways": (3 * 4 * 16 * 4, 0, 512),
    "weights.py 4": (4 * 2 * 2048, 1792, 16384),
    "pipeline.py 2 4": (4 * 8 * 16 * 4, 5120, 1024),
}


@pytest.mark.parametrize("name", BYTES)
def test_bytes_and_memory(name, module_of, tmp_path):
    sent, local, symmetric = BYTES[name]
    braid("run", module_of(name), "--random-weights", 1, "--random-inputs", 1, "--report", tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text())["bytes_sent_per_rank"] == sent
    frame = re.search(r"rt.procedure entry .* frame <local (\d+), symmetric (\d+),", braid("compile", module_of(name), "--emit=rt").out)
    assert frame.groups() == (str(local), str(symmetric))


@pytest.mark.parametrize("transport,name", [("threads", name) for name in PROGRAMS] + [
    ("nccl", name) for name in [*PROGRAMS, "ring.py 3", "ring.py 4 --both-ways", "weights.py 4", "pipeline.py 2 4"]])
def test_null_device(transport, name, module_of, tmp_path, monkeypatch):
    """For GPUs, on a machine without one: the streams of each rank run in a random order that their events allow."""
    findings = json.loads(braid("doctor", "--json").out)["findings"]
    if any(finding["name"] == "CUDA compiler" and finding["state"] == "absent" for finding in findings):
        pytest.skip("this machine has no compiler for CUDA; scripts/setup.sh installs NVRTC")
    braid("compile", module_of(name), "--target", "cuda:sm_90a", "-o", tmp_path / "gpu.braid")
    run("braid-test-cuda-on-host", tmp_path / "gpu.braid", "-o", tmp_path / "host.braid")
    monkeypatch.setenv("BRAID_FIBER_SEED", "7")
    out = braid("run", tmp_path / "host.braid", "--target", "cuda", "--transport", transport, "--cuda-library",
                BUILD / "lib/libBraidNullDevice.so", "--random-weights", 1, "--random-inputs", 1, "--check", "reference").out
    assert re.search(r"check y\w* against reference: .*: passed", out) and "failed" not in out, out


def test_a_part_in_the_wrong_place_is_refused(tmp_path, module_of):
    text = module_of("ring.py 3").read_text()
    assert text.count("shifts [0, -1, -2]") == 1
    wrong = tmp_path / "wrong.mlir"
    wrong.write_text(text.replace("shifts [0, -1, -2]", "shifts [0, 1, 2]"))
    err = braid("compile", wrong, "--emit=rt", expect=BAD_INPUT).err
    assert ("'comm.assemble' op expects shift -1 of operand 1, as the part that a rank holds comes from there, got 1"
            in err), err


@pytest.mark.parametrize("inside", ["", " --inside"])
def test_memory_of_gathered_weights_does_not_grow_with_layers(tmp_path, module_of, inside):
    """Two layers' whole weights at any time; a rank sends its half of every weight once, and nothing else."""
    layer = (64 * 16 + 16 * 64) * 4  # bytes of its weights
    frames = {}
    for layers in (4, 8):
        path = tmp_path / f"{layers}.json"
        braid("run", module_of(f"weights.py {layers}{inside}"), "--random-weights", 1, "--random-inputs", 1, "--report", path)
        report = json.loads(path.read_text())
        assert report["bytes_sent_per_rank"] == layers * layer // 2
        assert {c["kind"] for c in report["collectives"]} == {"all_gather"}
        for rank in report["per_rank"]:
            assert rank["symmetric_arena_bytes"] == 2 * layer
            assert rank["symmetric_value_bytes"] == rank["parameter_bytes"] == layers * layer // 2
        frames[layers] = report["per_rank"][0]["local_arena_bytes"]
    assert frames[4] == frames[8]


@pytest.mark.parametrize("inside", ["", " --inside"])
def test_gathered_weights_compute_what_whole_ones_do(tmp_path, module_of, inside):
    given = ["--random-weights", 3, "--random-inputs", 2]
    braid("run", module_of("weights.py 4 --model"), *given, "--output", tmp_path)
    out = braid("run", module_of(f"weights.py 4{inside}"), *given, "--check", tmp_path / "y.npy").out
    assert re.search(r"check y against .*: passed", out), out


def test_explain_lists_the_parameters_that_are_gathered_in_place(tmp_path, module_of):
    braid("compile", module_of("weights.py 2"), "-o", tmp_path / "weights.braid")
    out = braid("explain", tmp_path / "weights.braid").out
    expected = "".join(f"    parameter 'layers.{i}.{name}'\n" for i in range(2) for name in ("up", "down"))
    assert "  in symmetric memory, since collectives use them in place:\n" + expected + "\n" in out, out
    main = json.loads(braid("explain", tmp_path / "weights.braid", "--procedure", "main", "--json").out)["procedures"][0]
    assert len(main["symmetric_arguments"]) == 4
