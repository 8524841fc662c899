# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The planned memory of every model and program of the tests, against the bytes that are live at once. `-s` prints the table."""
import json
import re
import subprocess
import sys

import pytest

from braidtest import ROOT, braid

LIMIT = 1.15  # planned bytes by live bytes
CONFIGS = ROOT / "test/gpu/models"
TINY = ROOT / "test/Driver/Inputs"
GPT2 = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 48, "n_head": 6, "n_layer": 3, "vocab_size": 100,
        "n_positions": 64, "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new"}
MODELS = {"tiny LLaMA": (TINY / "tiny-llama.json", 4, 8), "tiny BERT": (TINY / "tiny-bert.json", 4, 8), "small GPT-2": (GPT2, 4, 32),
          "MiniLM": (CONFIGS / "minilm.json", 8, 128), "SmolLM2": (CONFIGS / "smollm2.json", 4, 128),
          "SmolLM2, 1 sequence": (CONFIGS / "smollm2.json", 1, 512)}
PLANS = ["tp=1", "tp=2", "tp=2 tp-sp", "tp=3", "tp=4 tp-sp", "dp=2", "dp=2 dp,fsdp", "dp=2,tp=2 tp-sp,dp", "dp=2,tp=2 tp,dp,fsdp"]
PROGRAMS = sorted(path.name for path in (ROOT / "examples/programs").glob("*.mlir"))
PRINTED = ["ring.py 2", "ring.py 5 --both-ways", "weights.py 8", "weights.py 8 --inside",
           "pipeline.py 2 4", "pipeline.py 3 5 --tp 2"]
REMARK = re.compile(r'Remark="@(\w+): local (\d+) bytes \((\d+) live at once, buffers (\d+)\), '
                    r"symmetric (\d+) bytes \((\d+) live at once, buffers (\d+)\)")
table = []


def measure(name, module, *options, entries=("main",)):
    """Planned by live bytes of both arenas of each entry, one in which nothing lives apart."""
    err = braid("compile", module, *options, "--emit=rt", "--remarks", "buffers", "-o", "/dev/null").err
    found = {match[1]: list(map(int, match.groups()[1:])) for match in REMARK.finditer(err)}
    for entry in entries:
        local, local_live, _, symmetric, symmetric_live, _ = found[entry]
        called = name if entries == ("main",) else f"{name}, {entry}"
        table.append((called, local, local_live, symmetric, symmetric_live))
        for planned, live in ((local, local_live), (symmetric, symmetric_live)):
            assert live <= planned, f"{called}: more bytes live than planned"
            assert planned <= LIMIT * live, f"{called}: {planned} bytes planned, {live} live at once"


@pytest.fixture(scope="module", autouse=True)
def print_table():
    yield
    print(f"\n{'':44} {'local':>10} {'live':>10} {'':>5}  {'symmetric':>10} {'live':>10}")
    for name, *figures in table:
        ratios = [f"{planned / live:.2f}" if live else "" for planned, live in (figures[:2], figures[2:])]
        print(f"{name:44} {figures[0]:10} {figures[1]:10} {ratios[0]:>5}  {figures[2]:10} {figures[3]:10} {ratios[1]:>5}")


@pytest.fixture(scope="module")
def imported(request, tmp_path_factory):
    config, batch, seq = MODELS[request.param]
    folder = tmp_path_factory.mktemp("model")
    if isinstance(config, dict):
        path = folder / "config.json"
        path.write_text(json.dumps(config))
        config = path
    braid("import", config, "--batch", batch, "--seq", seq, "-o", folder / "model.mlir")
    return request.param, folder / "model.mlir"


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("imported", MODELS, indirect=True)
def test_models(imported, plan):
    name, module = imported
    mesh, *strategy = plan.split()
    measure(f"{name}, {plan}", module, "--mesh", mesh, *(("--strategy", *strategy) if strategy else ()))


@pytest.mark.parametrize("name", PROGRAMS + PRINTED)
def test_programs(tmp_path, name):
    script, *arguments = name.split()
    module = ROOT / "examples/programs" / script
    if arguments:
        printed = subprocess.run([sys.executable, module, *arguments], capture_output=True, text=True, check=True).stdout
        module = tmp_path / "program.mlir"
        module.write_text(printed)
    measure(name, module)


@pytest.mark.parametrize("mesh", ["tp=1", "tp=2", "dp=2,tp=2"])
def test_every_entry(tmp_path, mesh):
    script = ROOT / "examples/programs/generation.py"
    (tmp_path / "generation.mlir").write_text(subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout)
    measure(f"generation.py, {mesh}", tmp_path / "generation.mlir", "--mesh", mesh, entries=("prefill", "decode", "whole"))
