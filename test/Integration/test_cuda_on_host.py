# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complete programs for GPUs, on a machine without one. braid-test-cuda-on-host compiles the output of `braid compile
--target cuda` for the host, and the CUDA executor runs it on the null device: row kernels and library kernels as fibers
in a random order, matmuls and collectives as plain loops. Results are compared with the interpreter's."""
import json

import pytest

import braidtest
import models
import test_activations

NULL_DEVICE = braidtest.BUILD / "lib" / "libBraidNullDevice.so"

# Enough layers and a large enough vocabulary to contain every kind of command, with the models' own widths. The LLaMA
# layer has an eighth of the width and the same number of query heads for each key head.
BERT = {"model_type": "bert", "architectures": ["BertModel"], "hidden_size": 384, "num_hidden_layers": 2,
        "num_attention_heads": 12, "intermediate_size": 1536, "vocab_size": 101, "max_position_embeddings": 64,
        "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "position_embedding_type": "absolute"}
LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "max_position_embeddings": 64,
         "hidden_act": "silu", "rms_norm_eps": 1e-5}
CONFIGS = {
    "minilm": BERT,
    "smollm2": {**LLAMA, "hidden_size": 576, "num_hidden_layers": 2, "num_attention_heads": 9, "num_key_value_heads": 3,
                "intermediate_size": 1536, "vocab_size": 101, "tie_word_embeddings": True},
    "llama-layer": {**LLAMA, "hidden_size": 512, "num_hidden_layers": 1, "num_attention_heads": 16,
                    "num_key_value_heads": 4, "intermediate_size": 1792, "vocab_size": 96, "rope_theta": 500000.0},
}
BATCH, SEQ, LENGTHS = 2, 7, (7, 4)


@pytest.fixture(scope="module", autouse=True)
def compiler():
    findings = json.loads(braidtest.braid("doctor", "--json").out)["findings"]
    if any(finding["name"] == "CUDA compiler" and finding["state"] == "absent" for finding in findings):
        pytest.skip("this machine has no compiler for CUDA; scripts/setup.sh installs NVRTC")


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """Returns the module and the run arguments of a model, by the model's name."""
    cases = {}

    def case(name):
        if name not in cases:
            directory, config = tmp_path_factory.mktemp(name), CONFIGS[name.removesuffix("-last")]
            options = ["--logits", "last"] if name.endswith("-last") else []
            (directory / "config.json").write_text(json.dumps(config))
            module = braidtest.import_model(directory / "config.json", directory / "model.mlir", BATCH, SEQ, *options)
            inputs = models.make_inputs(config, BATCH, SEQ, LENGTHS)
            if config["model_type"] != "bert":
                del inputs["token_type_ids"]
            paths = models.write_inputs(inputs, directory / "inputs")
            cases[name] = module, ["--random-weights", 5, *braidtest.input_args(paths)]
        return cases[name]

    return case


def compile_for_gpu(module, plan, out):
    """`plan`: a mesh, and perhaps a strategy behind it."""
    mesh, *strategy = plan.split()
    braidtest.braid("compile", module, "--mesh", mesh, *(["--strategy", *strategy] if strategy else []), "--target", "cuda:sm_90a",
                    "-o", out)
    return out


# The interpreter rounds after every operation, a kernel when it stores: the bound is twice the resulting difference. In
# these models attention without its first key differs by 4e-2 and more.
TOLERANCE = {"f32": 2e-5, "f16": 2e-3, "bf16": 1.6e-2}
CASES = [(name, "f32", mesh, "threads") for name in CONFIGS for mesh in ("tp=1", "tp=2", "tp=4")]
CASES += [("smollm2", "f32", "tp=2", "nccl"), ("smollm2", "bf16", "tp=2", "nccl"), ("smollm2", "f16", "tp=4", "threads"),
          ("minilm", "bf16", "tp=4", "threads"), ("minilm", "f16", "tp=2", "threads"),
          ("llama-layer", "bf16", "tp=2", "threads"), ("llama-layer", "f16", "tp=1", "threads"),
          ("smollm2-last", "f32", "tp=2", "threads"), ("smollm2-last", "bf16", "tp=2", "nccl")]
# Weights that collectives read where they were loaded.
CASES += [("smollm2", "f32", "dp=2 dp,fsdp", "nccl"), ("smollm2", "f32", "dp=2,tp=2 tp,dp,fsdp", "threads")]


@pytest.mark.parametrize("name, dtype, mesh, transport", CASES)
def test_program(imported, tmp_path, monkeypatch, name, dtype, mesh, transport):
    """Import writes f32 modules only; those of f16 and bf16 are the same text with other types."""
    module, arguments = imported(name)
    stored = tmp_path / "model.mlir"
    stored.write_text(module.read_text().replace("xf32>", f"x{dtype}>"))
    bundle = compile_for_gpu(stored, mesh, tmp_path / "gpu.braid")
    on_host = tmp_path / "host.braid"
    braidtest.run("braid-test-cuda-on-host", bundle, "-o", on_host)
    monkeypatch.setenv("BRAID_FIBER_SEED", str(1 + CASES.index((name, dtype, mesh, transport))))
    ranks = braidtest.ranks_of(mesh.split()[0])
    braidtest.braid("run", on_host, "--ranks", ranks, "--target", "cuda", "--transport", transport, "--cuda-library",
                    NULL_DEVICE, *arguments, "--check", "reference", "--tolerance", TOLERANCE[dtype], "--report",
                    tmp_path / "report.json")
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["machine"]["kernel_isa"] == "sm_90a" and report["transport"] == transport
    assert (len(report["collectives"]) > 0) == (ranks > 1)


def test_activations_of_extreme_values(tmp_path):
    module = test_activations.write_model(tmp_path / "model.mlir")
    bundle = compile_for_gpu(module, "dp=1", tmp_path / "gpu.braid")
    braidtest.run("braid-test-cuda-on-host", bundle, "-o", tmp_path / "host.braid")
    _, got = test_activations.run(tmp_path / "host.braid", tmp_path / "gpu", "--target", "cuda", "--cuda-library", NULL_DEVICE)
    _, expected = test_activations.run(module, tmp_path / "reference", "--mesh", "dp=1", "--target", "reference")
    test_activations.check(got, expected)


def test_code_of_a_gpu_is_refused(imported, tmp_path):
    """The null device accepts host code only, and says so."""
    module, arguments = imported("llama-layer")
    bundle = compile_for_gpu(module, "tp=1", tmp_path / "gpu.braid")
    result = braidtest.braid("run", bundle, "--target", "cuda", "--cuda-library", NULL_DEVICE, *arguments,
                             expect=braidtest.BAD_INPUT)
    assert "this is code for a GPU" in result.err
