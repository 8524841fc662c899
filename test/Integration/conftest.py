# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import os
import subprocess
import sys

# Set before transformers is imported: the tests must not look for a model on the network.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import numpy as np
import pytest

import braidtest
import models

sys.path[:0] = [str(braidtest.ROOT / "test" / "lab"), str(braidtest.ROOT / "examples" / "accuracy")]
from lab import Lab, LabUnavailable  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="run the tests marked 'long' too")


def pytest_configure(config):
    config.addinivalue_line("markers", "long: only with --long")
    config.addinivalue_line("markers", "torch: needs PyTorch's CPU build")


def pytest_collection_modifyitems(config, items):
    without_torch = not models.have_torch()
    for item in items:
        if item.get_closest_marker("long") and not config.getoption("--long"):
            item.add_marker(pytest.mark.skip(reason="only with --long"))
        if item.get_closest_marker("torch") and without_torch:
            item.add_marker(pytest.mark.skip(
                reason="PyTorch's CPU build is not here; the goldens in test/Integration/golden stand in"))


def pytest_report_header(config):
    if models.have_torch():
        import torch
        return f"comparing with PyTorch {torch.__version__}"
    return "PyTorch's CPU build is not here: comparing with the goldens in test/Integration/golden only"


@pytest.fixture(scope="session")
def minilm():
    directory = models.minilm_directory()
    assert (directory / "model.safetensors").exists(), f"expects the checkpoint in {directory}; run scripts/setup.sh"
    return directory


class Case:
    """An imported checkpoint with inputs and PyTorch's result for them."""

    def __init__(self, directory, checkpoint, inputs, golden, output=models.OUTPUT, ask=()):
        self.checkpoint, self.values, self.golden_value, self.output = checkpoint, inputs, golden, output
        self.batch, self.seq = inputs["input_ids"].shape
        self.inputs = models.write_inputs(inputs, directory / "inputs")
        self.golden = directory / "golden.npy"
        np.save(self.golden, golden)
        self.model = braidtest.import_model(checkpoint, directory / "model.mlir", self.batch, self.seq, *ask)
        self.directory = directory
        self.bundles = {}

    def bundle(self, mesh):
        if mesh not in self.bundles:
            out = self.directory / f"{mesh.replace(',', '-')}.braid"
            self.bundles[mesh] = braidtest.compile_model(self.model, out, mesh)
        return self.bundles[mesh]

    def run_args(self):
        return ["--weights", self.checkpoint, *braidtest.input_args(self.inputs)]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """The tiny BERT in the tree, with the golden next to it: needs no PyTorch."""
    stored = models.GOLDEN / "tiny-bert"
    inputs = {name: np.load(stored / f"{name}.npy") for name in ("input_ids", "attention_mask", "token_type_ids")}
    return Case(tmp_path_factory.mktemp("tiny"), stored, inputs, np.load(stored / f"{models.OUTPUT}.npy"))


@pytest.fixture(scope="session")
def minilm_case(tmp_path_factory, minilm):
    """MiniLM on a few tokens, with the golden in the tree: needs no PyTorch."""
    stored = models.GOLDEN / "minilm"
    inputs = {name: np.load(stored / f"{name}.npy") for name in ("input_ids", "attention_mask", "token_type_ids")}
    return Case(tmp_path_factory.mktemp("minilm"), minilm, inputs, np.load(stored / f"{models.OUTPUT}.npy"))


@pytest.fixture(scope="session")
def ucx():
    findings = json.loads(braidtest.braid("doctor", "--json").out)["findings"]
    if any(finding["name"] == "UCX" and finding["state"] == "absent" for finding in findings):
        pytest.skip("this machine has no UCX; scripts/setup.sh installs it")


@pytest.fixture(scope="session")
def agent(tmp_path_factory):
    """Stands in for ssh: takes its command line, and runs the command here."""
    path = tmp_path_factory.mktemp("agent") / "agent"
    path.write_text('#!/bin/bash\nwhile [[ $1 == -* ]]; do shift; done\nshift\nexec bash -c "$*"\n')
    path.chmod(0o755)
    return path


@pytest.fixture(scope="session")
def bundle_of(tmp_path_factory):
    """The bundle of a program of ranks, by the name of its file, or by its script and arguments."""
    examples, inputs = braidtest.ROOT / "examples/programs", braidtest.ROOT / "test/Integration/Inputs"
    made = {}

    def bundle(name):
        if name not in made:
            folder = tmp_path_factory.mktemp("bundle")
            script, *arguments = name.split()
            path = inputs / name if (inputs / name).exists() else examples / script
            if script.endswith(".py"):
                path = folder / "program.mlir"
                command = [sys.executable, examples / script, *arguments]
                path.write_text(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            made[name] = folder / "program.braid"
            mesh = ["--mesh", "tp=2"] if script == "generation.py" else []
            braidtest.braid("compile", path, *mesh, "-o", made[name])
        return made[name]

    return bundle


@pytest.fixture(scope="module")
def two_hosts():
    try:
        with Lab(hosts=2, rate="1gbit", share=0.9) as made:
            yield made
    except LabUnavailable as error:
        pytest.skip(f"no test hosts here: {error}")


def pytest_terminal_summary(terminalreporter):
    """Names the tensors whose change does not affect the output (test_perturbed_weights.py explains why)."""
    names = [report.nodeid.split("[", 1)[1].rstrip("]") for report in terminalreporter.stats.get("passed", [])
             if report.when == "call" and "test_output_does_not_depend_on[" in report.nodeid]
    if names:
        terminalreporter.write_sep("-", "tensors changed that the output does not depend on")
        for name in names:
            terminalreporter.write_line("  " + name)
