# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests test/gpu without a GPU: the prepared files, running them on the null device, and the format of the results."""
import copy
import ctypes
import json
import lzma
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from braidtest import BUILD, ROOT, run

GPU = ROOT / "test" / "gpu"
sys.path.insert(0, str(GPU))

import encoded_checks  # noqa: E402
import plan  # noqa: E402
import prepare  # noqa: E402
import results  # noqa: E402
import runtime_build  # noqa: E402


def script(*command, expect=0):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=500, stdin=subprocess.DEVNULL, cwd=ROOT,
                          env={**os.environ, "BRAID_BUILD_DIR": str(BUILD)})
    assert done.returncode == expect, f"expected exit status {expect}, got {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def on_null_device(prepared, *options, expect=0):
    return script(GPU / "run.sh", "--prepared", prepared, "--build", BUILD, "--cuda-library", BUILD / "lib/libBraidNullDevice.so",
                  "--kernel-bytes", 4096, "--repeat", 2, *options, expect=expect)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Two models on two ranks. The null device runs their code instead of a GPU."""
    findings = json.loads(run("braid", "doctor", "--json").out)["findings"]
    if any(finding["name"] == "CUDA compiler" and finding["state"] == "absent" for finding in findings):
        pytest.skip("this machine has no compiler for CUDA; scripts/setup.sh installs NVRTC")
    folder = tmp_path_factory.mktemp("gpu") / "prepared"
    done = script(sys.executable, GPU / "prepare.py", "--small", "--models", "minilm,smollm2", "--ranks", 2, "--no-libraries",
                  "--output", folder)
    assert " of 64 MB" in done.stdout
    for packed in folder.glob(f"**/*{plan.BUNDLE}"):
        bundle = unpack(packed, folder.parent)
        run("braid-test-cuda-on-host", bundle, "-o", bundle)
        packed.write_bytes(lzma.compress(bundle.read_bytes(), preset=0))
    return folder


def unpack(packed, folder):
    bundle = folder / "unpacked.braid"
    bundle.write_bytes(lzma.decompress(packed.read_bytes()))
    return bundle


def test_models_on_the_null_device(prepared, tmp_path):
    output = tmp_path / "results.md"
    done = on_null_device(prepared, "--only", "runs,encoded,kernels,codecs", "--output", output)
    data = results.parse(output.read_text())
    assert results.succeeded(data) and data["gpus"] and data["small"]
    quantized = plan.QUANTIZED["smollm2", 2]
    assert [(r["model"], r["encoding"], r["transport"], r["graph"]) for r in data["runs"]] == [
        (model, encoding, transport, graph) for model, encoding in (("minilm", None), ("smollm2", None), ("smollm2", quantized))
        for transport, graph in (("threads", False), ("threads", True), ("nccl", False))]
    for entry in data["runs"]:
        assert entry["state"] == "measured" and 0 < entry["relative_l2"] <= (1e-2 if entry["encoding"] else 2e-5), entry
        assert entry["runs"] == 2 and entry["bytes_sent_per_rank"] > 0
        assert f"{results.describe(entry)}: relative L2" in done.stdout
    assert data["copy"]["bytes_per_s"] > 0
    kernels = {entry["model"]: [k["kernel"] for k in entry["kernels"]] for entry in data["kernels"]}
    for model, names in kernels.items():
        table = json.loads(launches(unpack(prepared / model / f"tp2{plan.BUNDLE}", tmp_path)))
        assert names == [kernel["symbol"] for kernel in table["kernels"]]
    assert [(e["model"], e["ranks"], e["way"]) for e in data["encoded"]] == [
        (model, 2, way) for model in ("encoded-covering", "encoded-sums", "encoded-codecs") for way in plan.WAYS]
    for entry in data["encoded"]:
        assert entry["state"] == "measured" and entry["cases"] > 2 and entry["differing"] == 0, entry
        assert f"{results.describe_encoded(entry)}: 0 of {entry['cases']} results differ\n" in done.stdout
    cases = json.loads((prepared / plan.CONTENTS).read_text())["encoded"][-1]["cases"]
    for entry in data["codecs"]:
        assert [(c["encoding"], c["type"], c["kernel"]) for c in entry["codecs"]] == [
            (encoding, dtype, kernel) for encoding, dtype in dict.fromkeys((case["encoding"], case["type"]) for case in cases)
            for kernel in ("encode", "decode", "decode_sum")]


def launches(bundle):
    with zipfile.ZipFile(bundle) as archive:
        return archive.read(next(name for name in archive.namelist() if name.startswith("cuda-") and name.endswith(".json")))


def test_a_wrong_result_is_told(prepared, tmp_path):
    folder = tmp_path / "prepared"
    shutil.copytree(prepared, folder)
    contents = json.loads((folder / plan.CONTENTS).read_text())
    contents["models"] = contents["models"][:1]
    (folder / plan.CONTENTS).write_text(json.dumps(contents))
    for expected in (folder / "minilm" / "expected").iterdir():
        values = np.load(expected)
        values[..., -1] += 0.5
        np.save(expected, values)
    done = on_null_device(folder, "--only", "runs", expect=2)
    assert "run: error: something failed; see above" in done.stderr
    data = results.parse((folder / "RESULTS.md").read_text())
    assert not results.succeeded(data)
    assert [entry["passed"] for entry in data["runs"]] == [False] * 3
    assert "minilm on 2 ranks, one GPU: relative L2" in done.stdout and ": FAILED;" in done.stdout


def test_a_run_that_ends_early_is_told(prepared, tmp_path):
    folder = tmp_path / "prepared"
    shutil.copytree(prepared, folder)
    packed = folder / "smollm2" / f"tp2{plan.BUNDLE}"
    packed.write_bytes(lzma.compress(unpack(packed, tmp_path).read_bytes()[:-100], preset=0))
    on_null_device(folder, "--only", "runs", expect=2)
    data = results.parse((folder / "RESULTS.md").read_text())
    runs = data["runs"]
    states = {(entry["model"], entry["encoding"], entry["state"]) for entry in runs}
    assert states == {("minilm", None, "measured"), ("smollm2", None, "failed"), ("smollm2", plan.QUANTIZED["smollm2", 2], "measured")}
    assert {entry["reason"] for part in plan.PARTS[1:] for entry in data[part]} == {"--only left it out"}


def test_an_archive_that_is_cut_off_is_told(prepared, tmp_path):
    folder = tmp_path / "prepared"
    shutil.copytree(prepared, folder)
    packed = folder / plan.ENCODED_FOLDER / "encoded-sums2" / f"{encoded_checks.PROGRAM}{plan.BUNDLE}"
    packed.write_bytes(packed.read_bytes()[:-100])
    on_null_device(folder, "--only", "encoded", expect=2)
    entries = results.parse((folder / "RESULTS.md").read_text())["encoded"]
    assert {(entry["model"], entry["state"]) for entry in entries} == {
        ("encoded-covering", "measured"), ("encoded-sums", "failed"), ("encoded-codecs", "measured")}
    assert str(packed) in next(entry["reason"] for entry in entries if entry["state"] == "failed")


def test_elements_that_differ_are_counted(prepared, tmp_path):
    folder = tmp_path / "prepared"
    shutil.copytree(prepared, folder)
    expected = folder / plan.ENCODED_FOLDER / "encoded-sums2" / encoded_checks.EXPECTED
    with zipfile.ZipFile(expected) as archive:
        values = {name: archive.read(name) for name in archive.namelist()}
    values["y1.npy"] = values["y1.npy"][:-1] + bytes([values["y1.npy"][-1] ^ 1])
    with zipfile.ZipFile(expected, "w") as archive:
        for name, value in values.items():
            archive.writestr(name, value)
    done = on_null_device(folder, "--only", "encoded", expect=2)
    program = next(p for p in json.loads((folder / plan.CONTENTS).read_text())["encoded"] if p["name"] == "encoded-sums")
    case = program["cases"][1]
    difference = {"case": encoded_checks.describe(case), "elements": 1, "of": case["size"][0] * case["size"][1]}
    text = (folder / "RESULTS.md").read_text()
    entries = results.parse(text)["encoded"]
    assert [entry["differences"] for entry in entries if entry["model"] == "encoded-sums"] == [[difference]] * 3
    assert sum(entry["differing"] for entry in entries) == 3
    assert f": FAILED; {difference['case']} in 1 of {difference['of']}" in done.stdout
    assert f"| encoded-sums on 2 ranks, one GPU | {difference['case']} | 1 of {difference['of']} |" in text


SANITIZER = """#!/bin/bash
# Stands in for compute-sanitizer.
[[ $1 == --tool && "$3 $4 $5 $6" == "--report-api-errors no --error-exitcode 9" ]] || exit 3
tool=$2
shift 6
"$@" >"$0.out" || exit
[[ $tool == racecheck ]] && echo "RACECHECK SUMMARY: 0 hazards" || echo "ERROR SUMMARY: 0 errors"
"""


def test_sanitizers(prepared, tmp_path, monkeypatch):
    stand_in = tmp_path / "compute-sanitizer"
    stand_in.write_text(SANITIZER)
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    output = tmp_path / "results.md"
    on_null_device(prepared, "--only", "sanitizers", "--output", output)
    entries = results.parse(output.read_text())["sanitizers"]
    assert [(e["tool"], e["model"], e["ranks"], e["encoding"]) for e in entries] == plan.SANITIZED
    assert {(e["state"], e["errors"]) for e in entries} == {("measured", 0)}
    # racecheck runs nothing of a model's own size.
    assert {e["model"] for e in entries if e["tool"] == "racecheck"} == {*plan.TINY, "encoded-covering", "encoded-sums", "encoded-codecs"}


def test_parts_are_added_to_a_results_file(prepared, tmp_path):
    output = tmp_path / "results.md"
    on_null_device(prepared, "--only", "kernels", "--output", output)
    kernels = results.parse(output.read_text())
    on_null_device(prepared, "--only", "codecs", "--add", "--output", output)
    both = results.parse(output.read_text())
    assert both["kernels"] == kernels["kernels"] and both["copy"] == kernels["copy"]
    assert {part for part in plan.PARTS if both[part][0]["state"] == "measured"} == {"kernels", "codecs"}
    both["gpus"] = ["another"]
    output.write_text(results.render(both))
    done = on_null_device(prepared, "--only", "runs", "--add", "--output", output, expect=1)
    assert done.stderr.startswith(f"run: error: --add: {output} has 'gpus' ['another'], here it is ")


def test_a_time_limit_leaves_the_rest_out(prepared, tmp_path):
    output = tmp_path / "results.md"
    on_null_device(prepared, "--time-limit", 1, "--output", output)
    data = results.parse(output.read_text())
    reasons = [entry.get("reason") for part in plan.PARTS for entry in data[part]]
    assert {"--time-limit was over"} <= set(reasons) <= {None, "--time-limit ended it", "--time-limit was over"}


def test_nothing_prepared(tmp_path):
    done = script(GPU / "run.sh", "--prepared", tmp_path, expect=1)
    assert done.stderr == f"run: error: {tmp_path}/contents.json is not there: test/gpu/prepare.sh makes it on a machine with LLVM\n"


def write_contents(folder, **changes):
    contents = {"format_version": plan.FORMAT_VERSION, "machine": os.uname().machine, "small": True, "models": [], "tiny": [],
                "encoded": [], **changes}
    (folder / plan.CONTENTS).write_text(json.dumps(contents))


def test_prepared_for_another_machine(tmp_path):
    write_contents(tmp_path, machine="s390x")
    done = script(GPU / "run.sh", "--prepared", tmp_path, expect=1)
    assert done.stderr.startswith(f"run: error: {tmp_path} was made for s390x, this machine is ")
    write_contents(tmp_path, models=None)
    done = script(GPU / "run.sh", "--prepared", tmp_path, expect=1)
    assert "was not made by this version of test/gpu/prepare.sh, or not to its end" in done.stderr


def test_no_gpu(tmp_path):
    try:
        ctypes.CDLL("libcuda.so.1")
        pytest.skip("this machine has a driver")
    except OSError:
        pass
    write_contents(tmp_path)
    done = script(GPU / "run.sh", "--prepared", tmp_path, expect=1)
    assert done.stderr.startswith("run: error: expects an NVIDIA GPU and its driver on this machine: libcuda.so.1: ")
    assert not (tmp_path / "RESULTS.md").exists()


@pytest.mark.parametrize("arguments, message", [
    (["prepare.py", "--models", "gpt"], "prepare: error: --models expects some of minilm,smollm2,llama-layer, got 'gpt'\n"),
    (["prepare.py", "--ranks", "3"], "prepare: error: --ranks expects some of 1,2,4, got '3'\n"),
    (["prepare.py", "--architectures", "sm_80,sm_70"],
     "prepare: error: --architectures expects some of sm_80,sm_90a,sm_100, got 'sm_70'\n"),
    (["run.py", "--only", "models"],
     "argument --only: expects some of runs,encoded,kernels,codecs,sanitizers,pytorch, got 'models'\n"),
    (["run.py", "--repeat", "0"], "argument --repeat: expects a positive number, got '0'\n"),
])
def test_wrong_options(arguments, message):
    done = subprocess.run([sys.executable, GPU / arguments[0], *arguments[1:]], capture_output=True, text=True)
    assert done.returncode != 0 and done.stderr.endswith(message)


def test_a_folder_of_others_is_left_alone(tmp_path):
    (tmp_path / "mine").write_text("")
    done = script(sys.executable, GPU / "prepare.py", "--small", "--output", tmp_path, expect=1)
    assert done.stderr == f"prepare: error: {tmp_path} has other things in it\n"
    assert (tmp_path / "mine").exists()


def test_libraries_are_all_that_the_build_looks_for(tmp_path):
    """The build files find every library and header in the collected folder, and it has everything needed to load
    them."""
    target = tmp_path / plan.LIBRARIES
    prepare.collect_libraries(target)
    for library in (target / "lib").iterdir():
        for line in subprocess.run(["ldd", library], capture_output=True, text=True, env={"LD_LIBRARY_PATH": str(target / "lib")},
                                   check=True).stdout.splitlines():
            name, _, path = line.strip().partition(" => ")
            if path:
                assert path.startswith(str(target)) or prepare.SYSTEM_LIBRARIES.match(name), line
    code = "#include <CLI/CLI.hpp>\n#include <dnnl.hpp>\n#include <flatbuffers/flatbuffers.h>\n#include <nlohmann/json.hpp>\n" \
           "#include <oneapi/dnnl/dnnl.h>\n#include <openssl/evp.h>\n#include <zip.h>\n"
    done = subprocess.run([prepare.cached("CMAKE_CXX_COMPILER"), "-std=c++17", "-M", "-isystem", target / "include", "-xc++", "-"],
                          input=code, capture_output=True, text=True, check=True)
    for path in map(pathlib.Path, filter(lambda word: word.startswith("/usr/include/"), done.stdout.split())):
        parts = [part for part in path.relative_to("/usr/include").parts if not part.endswith("-linux-gnu")]
        assert not any(pathlib.Path(parts[0]).match(pattern) for pattern in prepare.HEADERS), path


def test_packed_programs_need_nothing_else(prepared, tmp_path):
    """They run with what is in their folder, and glibc."""
    folder = tmp_path / "prepared"
    shutil.copytree(prepared, folder)
    prepare.archive(folder, plan.PROGRAMS_FOLDER, prepare.collect_programs, preset=0)
    contents = json.loads((folder / plan.CONTENTS).read_text())
    glibc = os.confstr("CS_GNU_LIBC_VERSION").split()[1]
    unpacked = runtime_build.get_runtime(folder, {**contents, "glibc": glibc}, tmp_path / "build")
    for program in plan.PROGRAMS:
        loaded = subprocess.run(["ldd", unpacked / "lib" / program], capture_output=True, text=True, check=True,
                                env={"LD_LIBRARY_PATH": str(unpacked / "lib")}).stdout
        for line in loaded.splitlines():
            name, _, path = line.strip().partition(" => ")
            assert not path or path.startswith(str(unpacked)) or prepare.GLIBC.match(name), line
    on_null_device(folder, "--only", "encoded,kernels", "--build", unpacked)
    with pytest.raises(runtime_build.Error) as told:
        runtime_build.get_runtime(folder, {**contents, "glibc": "9.1"}, tmp_path / "build")
    assert str(told.value).startswith(f"expects glibc 9.1 or newer for the prepared programs, got {glibc}: ")


def test_where_pytorch_is_not_there(prepared, tmp_path):
    """Or there, where this machine has a GPU."""
    output = tmp_path / "results.md"
    on_null_device(prepared, "--only", "pytorch", "--output", output)
    entries = results.parse(output.read_text())["pytorch"]
    assert [(e["model"], e["graph"]) for e in entries] == [(model, graph) for model in ("minilm", "smollm2") for graph in (False, True)]
    assert all(entry["state"] in ("measured", "unmeasured") for entry in entries)


def test_pytorch_on_the_cpu(prepared, tmp_path):
    """Its models are those of the plan. A reason takes the place of a time."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    config = tmp_path / "config.json"
    # transformers expects heads to divide the hidden size.
    config.write_text(json.dumps({**json.loads((ROOT / plan.SMALL_MODELS["smollm2"]["config"]).read_text()), "num_attention_heads": 4,
                                  "num_key_value_heads": 2}))
    specs = [{"name": name, "config": str(config if model["family"] == "llama" else ROOT / model["config"]), "import": model["import"],
              "inputs": str(prepared / ("minilm" if model["family"] == "bert" else "smollm2") / "inputs")}
             for name, model in plan.SMALL_MODELS.items()]
    specs.append({**specs[0], "name": "none", "config": str(tmp_path / "none.json")})
    done = script(sys.executable, GPU / "pytorch.py", json.dumps(specs), "--device", "cpu", "--repeat", 2)
    models = {(one["model"], one["graph"]): one for one in json.loads(done.stdout)["models"]}
    assert [*models] == [(name, graph) for name in (*plan.SMALL_MODELS, "none") for graph in (False, True)]
    for (name, graph), one in models.items():
        if name == "none" or graph:
            assert one["reason"]
        else:
            assert one["median_s"] > 0


# --- format of the results

def test_kept_results():
    data = results.parse((GPU / "RESULTS.md").read_text())
    wanted = results.unmeasured("x")
    assert [(r["model"], r["ranks"], r["encoding"], r["transport"], r["graph"]) for r in data["runs"]] == [
        (r["model"], r["ranks"], r["encoding"], r["transport"], r["graph"]) for r in wanted["runs"]]
    assert results.render(data) == (GPU / "RESULTS.md").read_text()


def test_results_of_another_form():
    good = results.unmeasured("no GPU was at hand")
    results.check(good)
    measured = {"state": "measured", "relative_l2": 1e-6, "allowed_relative_l2": 2e-5, "passed": True, "median_run_s": 1e-3,
                "min_run_s": 1e-3, "runs": 20, "bytes_sent_per_rank": 0, "exposed_comm_s": 0.0, "peak_memory_bytes": 1}
    of = "minilm on 1 rank, one GPU"

    def changed(change):
        data = copy.deepcopy(good)
        change(data)
        return data

    def measure(**changes):
        def change(data):
            data.update(date="2026-01-01 00:00 UTC", gpus=["a GPU"])
            data["runs"][0].update(measured)
            data["runs"][0].update(changes)
        return change

    results.check(changed(measure()))
    assert results.parse(results.render(changed(measure())))["runs"][0]["median_run_s"] == 1e-3
    beside = changed(measure())
    assert "| yes | 1.000 | unmeasured | 0.000 |" in results.render(beside)
    beside["pytorch"][0].update(state="measured", median_s=4e-3, torch="2", transformers="5")
    assert "| yes | 1.000 | 0.25 | 0.000 |" in results.render(beside)
    def measured_codec(d):
        d["codecs"][0].update(state="measured", copy={"bytes": 1, "seconds": 1, "bytes_per_s": 1}, codecs=[{"encoding": "int8:128"}])

    for change, message in [
        (lambda d: d["encoded"][0].update(state="measured", cases=3, differing=1, differences=[]),
         "expects each difference of encoded-covering on 2 ranks, one GPU once"),
        (lambda d: d["codecs"][0].update(state="measured"), "expects 'bytes' of the copy beside the codecs of 512 MiB to be a int, got None"),
        (measured_codec, "expects 'type' of the codecs of 512 MiB to be a str, got None"),
        (lambda d: d.update(format_version=9), f"expects format_version {plan.FORMAT_VERSION}, got 9"),
        (lambda d: d.pop("runs"), "expects 'runs'"),
        (lambda d: d["runs"][0].update(state="good"), f"expects a state of {of}, got 'good'"),
        (lambda d: d["runs"][0].pop("reason"), f"expects a reason why {of} was not measured"),
        (measure(median_run_s="1 ms"), f"expects 'median_run_s' of {of} to be a float, got '1 ms'"),
        (measure(passed=False), f"expects 'passed' of {of} to say what it measured"),
        (lambda d: d["runs"][0].update(measured), "expects a date and a GPU beside what was measured"),
        (lambda d: d["kernels"][0].update(state="measured"), "expects a list of the kernels of minilm"),
        (lambda d: d["sanitizers"][0].update(state="measured"), "expects 'errors' of memcheck to be a int, got None"),
    ]:
        with pytest.raises(results.Malformed) as told:
            results.check(changed(change))
        assert str(told.value) == message
    with pytest.raises(results.Malformed):
        results.parse("# On a GPU\n")


def test_what_counts_as_success():
    data = results.unmeasured("no GPU was at hand")
    assert results.succeeded(data)
    for name, change in [("encoded", {"state": "measured", "differing": 1}), ("codecs", {"state": "failed", "reason": "x"}),
                         ("runs", {"state": "failed", "reason": "x"}), ("runs", {"state": "measured", "passed": False}),
                         ("kernels", {"state": "failed", "reason": "x"}), ("sanitizers", {"state": "measured", "errors": 2})]:
        wrong = copy.deepcopy(data)
        wrong[name][0].update(change)
        assert not results.succeeded(wrong), (name, change)
