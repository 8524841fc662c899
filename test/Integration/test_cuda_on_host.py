# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complete programs for GPUs, on a machine without one. braid-test-cuda-on-host compiles the output of `braid compile
--target cuda` for the host, and the CUDA executor runs it on the null device: row kernels and library kernels as fibers
in a random order, matmuls and collectives as plain loops. Results are compared with the interpreter's."""
import json
import zipfile

import numpy as np
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


# --- encodings

# Ranks that have different rows, which the group does not divide, a permute after which some ranks have received nothing, and a ring in
# which all send first. GPU kernels compute nothing else, so that they must give the CPU's bits.
EXCHANGES = """
comm.mesh @mesh <tp = RANKS>
func.func @main(
    %x: tensor<7x200xTYPE> {nn.name = "x", comm.global_type = tensor<ROWSx200xTYPE>, comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>})
    -> (tensor<7x200xTYPE> {nn.name = "y", comm.global_type = tensor<7x200xTYPE>, comm.sharding = #comm.sharding<@mesh, [{}, {}]>})
    attributes {nn.entry} {
  %s = comm.all_reduce sum(%x) over <@mesh, {tp}> role "sum" : tensor<7x200xTYPE>
  %p = comm.permute(%x) pairs [0 -> 1] over <@mesh, {tp}> role "shift" : tensor<7x200xTYPE>
  comm.send(%p) pairs [RING] over <@mesh, {tp}> tag 1 role "ring" : tensor<7x200xTYPE>
  %q = comm.recv pairs [RING] over <@mesh, {tp}> tag 1 role "ring" : tensor<7x200xTYPE>
  %t = nn.add %p, %q : tensor<7x200xTYPE>, tensor<7x200xTYPE> -> tensor<7x200xTYPE>
  %a = nn.add %s, %t : tensor<7x200xTYPE>, tensor<7x200xTYPE> -> tensor<7x200xTYPE>
  %y = comm.all_reduce sum(%a) over <@mesh, {tp}> role "again" : tensor<7x200xTYPE>
  return %y : tensor<7x200xTYPE>
}
"""


def run_encoded(bundle, inputs, out, *options):
    braidtest.braid("run", bundle, *inputs, "--output", out, *options)
    return (out / "y.npy").read_bytes()


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("encoding, chunks", [
    ("*=int8:128", "one"), ("*=int4:128+spikes/int8:128", "many"), ("*=fp6e2m3:64+hadamard32", "one"), ("*=mxfp8e4m3", "one"), ("*=nvfp4", "one"),
    ("sum=bf16,again=int3:40+zero-point+bf16-scale", "one")])
def test_exchanges_give_the_bits_of_the_cpu(tmp_path, ranks, encoding, chunks):
    """Once, several times, and as a graph, of which the later runs are replays."""
    module = tmp_path / "model.mlir"
    ring = ", ".join(f"{rank} -> {(rank + 1) % ranks}" for rank in range(ranks))
    module.write_text(EXCHANGES.replace("RANKS", str(ranks)).replace("ROWS", str(7 * ranks)).replace("TYPE", "f32").replace("RING", ring))
    np.save(tmp_path / "x.npy", np.random.default_rng(3).standard_normal((7 * ranks, 200), np.float32))
    inputs = ["--input", f"x={tmp_path / 'x.npy'}"]
    quantize = ["--quantize", encoding]
    if chunks == "many":  # of a message more than may be sent before one is received
        quantize = ["--passes", f"braid-quantize-collectives{{encodings={encoding}}},braid-expand-encoded{{message-bytes=64}}"]
    braidtest.braid("compile", module, *quantize, "-o", tmp_path / "cpu.braid")
    expected = run_encoded(tmp_path / "cpu.braid", inputs, tmp_path / "cpu")
    braidtest.braid("compile", module, *quantize, "--target", "cuda:sm_90a", "-o", tmp_path / "gpu.braid")
    braidtest.run("braid-test-cuda-on-host", tmp_path / "gpu.braid", "-o", tmp_path / "host.braid")
    cuda = ["--target", "cuda", "--cuda-library", NULL_DEVICE]
    # Ranks on one GPU decode payloads where their senders have them.
    for number, (in_place, options) in enumerate([(True, ["--transport", "threads"]), (False, ["--transport", "threads", "--copy-payloads"]),
                                                  (False, ["--transport", "nccl", "--repeat", 2]),
                                                  (True, ["--transport", "threads", "--cuda-graph", "--repeat", 3])]):
        report = tmp_path / f"report{number}.json"
        assert run_encoded(tmp_path / "host.braid", inputs, tmp_path / f"cuda{number}", *cuda, *options, "--report", report) == expected, options
        payloads = [c for c in json.loads(report.read_text())["collectives"] if c["kind"] in ("all_to_all", "all_gather")]
        assert payloads and all(c.get("read_in_place", False) == in_place for c in payloads), options


QUANTIZED = [("smollm2", "f32", "tp=2", "*=int8:128"), ("minilm", "f32", "tp=4", "*=int4:128+spikes/int8:128"),
             ("llama-layer", "bf16", "tp=2", "*=int8:128"), ("llama-layer", "f16", "tp=4", "*=mxfp8e4m3")]


@pytest.mark.parametrize("name, dtype, mesh, encoding", QUANTIZED)
def test_quantized_program(imported, tmp_path, name, dtype, mesh, encoding):
    """Against the model without encodings, by what the bundle allows: matmuls and kernels of rows have other roundings than the CPU's."""
    module, arguments = imported(name)
    stored = tmp_path / "model.mlir"
    stored.write_text(module.read_text().replace("xf32>", f"x{dtype}>"))
    braidtest.braid("compile", stored, "--mesh", mesh, "--quantize", encoding, "--target", "cuda:sm_90a", "-o", tmp_path / "gpu.braid")
    braidtest.run("braid-test-cuda-on-host", tmp_path / "gpu.braid", "-o", tmp_path / "host.braid")
    braidtest.braid("run", tmp_path / "host.braid", "--ranks", braidtest.ranks_of(mesh), "--target", "cuda", "--cuda-library", NULL_DEVICE,
                    *arguments, "--check", "reference")


@pytest.mark.parametrize("name, mesh, matmuls, encoding, transport", [
    ("smollm2", "tp=2", "*=int8,lm_head=none", None, "nccl"), ("smollm2", "tp=4", "*=int8", "*=int8:128", "threads"),
    ("minilm", "tp=2", "*=int8", None, "threads")])
def test_matmuls_of_8_bits(imported, tmp_path, name, mesh, matmuls, encoding, transport):
    """Against the model of floats, by what the bundle allows, and much closer to the same program on the CPU. A head of 101 rows, and of a
    quarter of them, has sizes that cuBLASLt does not take."""
    module, arguments = imported(name)
    options = ["--mesh", mesh, "--quantize-matmuls", matmuls, *(["--quantize", encoding] if encoding else [])]
    braidtest.braid("compile", module, *options, "-o", tmp_path / "cpu.braid")
    braidtest.braid("compile", module, *options, "--target", "cuda:sm_90a", "-o", tmp_path / "gpu.braid")
    braidtest.run("braid-test-cuda-on-host", tmp_path / "gpu.braid", "-o", tmp_path / "host.braid")
    ranks = ["--ranks", braidtest.ranks_of(mesh)]
    braidtest.braid("run", tmp_path / "cpu.braid", *ranks, *arguments, "--output", tmp_path / "cpu")
    braidtest.braid("run", tmp_path / "host.braid", *ranks, "--target", "cuda", "--transport", transport, "--cuda-library", NULL_DEVICE, *arguments,
                    "--check", "reference", "--output", tmp_path / "gpu")
    for path in sorted((tmp_path / "cpu").iterdir()):
        expected, got = np.load(path).astype(np.float64), np.load(tmp_path / "gpu" / path.name)
        # An activation that is rounded to the next integer changes what follows by some thousandths.
        assert np.linalg.norm(got - expected) <= 2e-2 * np.linalg.norm(expected), path.name


def launch_table(bundle):
    with zipfile.ZipFile(bundle) as archive:
        return json.loads(archive.read("cuda-sm_90a/kernels.json"))["kernels"]


@pytest.mark.parametrize("name, dtype, mesh, encoding", [("smollm2", "f32", "tp=2", "*=int8:128"),
                                                         ("minilm", "bf16", "tp=4", "*=int4:128+spikes/int8:128"),
                                                         ("llama-layer", "f16", "tp=2", "*=nvfp4/int6:64+hadamard32")])
def test_codecs_in_kernels_give_the_bits_of_separate_ones(imported, tmp_path, name, dtype, mesh, encoding):
    """Those of the same program, in which codecs are launches of their own; also when the kernels run again."""
    module, arguments = imported(name)
    stored = tmp_path / "model.mlir"
    stored.write_text(module.read_text().replace("xf32>", f"x{dtype}>"))
    results = {}
    for form in ("fused", "apart"):
        options = f"mesh={mesh} quantize={encoding} target=cuda fuse-codecs={'true' if form == 'fused' else 'false'}"
        braidtest.run("braid-opt", stored, f"--braid-pipeline={options}", "--emit-bytecode", "-o", tmp_path / f"{form}.mlir")
        braidtest.braid("compile", tmp_path / f"{form}.mlir", "--target", "cuda:sm_90a", "-o", tmp_path / f"{form}.braid")
        braidtest.run("braid-test-cuda-on-host", tmp_path / f"{form}.braid", "-o", tmp_path / "host.braid")
        coded = [operand["codec"] for kernel in launch_table(tmp_path / f"{form}.braid") for operand in kernel["operands"] if "codec" in operand]
        assert (len(coded) > 0) == (form == "fused"), coded
        for transport, *options in (["threads"], ["threads", "--cuda-graph", "--repeat", 2]):
            out = tmp_path / f"{form}-{len(options)}"
            braidtest.braid("run", tmp_path / "host.braid", "--ranks", braidtest.ranks_of(mesh), "--target", "cuda", "--transport", transport,
                            "--cuda-library", NULL_DEVICE, *arguments, "--output", out, *options)
            results[form, len(options)] = {path.name: path.read_bytes() for path in sorted(out.glob("*.npy"))}
    assert results["fused", 0] and all(result == results["apart", 0] for result in results.values())


# Rank 1 expects another encoding than rank 0 sent, in a kernel that decodes and in a decode of its own.
HAND_OFF = """
comm.mesh @mesh <pp = 2>
func.func @main(%x: tensor<4x128xf32> {nn.name = "x", comm.global_type = tensor<8x128xf32>, comm.sharding = #comm.sharding<@mesh, [{pp}, {}]>})
    -> (tensor<4x128xf32> {nn.name = "y", comm.global_type = tensor<8x128xf32>, comm.sharding = #comm.sharding<@mesh, [{pp}, {}]>})
    attributes {nn.entry} {
  comm.send(%x) pairs [0 -> 1] over <@mesh, {pp}> tag 1 role "hand-off" {comm.encoding = #comm.encoding<"int8:128+symmetric">} : tensor<4x128xf32>
  %0 = comm.recv pairs [0 -> 1] over <@mesh, {pp}> tag 1 role "hand-off" {comm.encoding = #comm.encoding<"fp8e4m3:128">} : tensor<4x128xf32>
  %y = nn.activation gelu %0 : tensor<4x128xf32>
  return %y : tensor<4x128xf32>
}
"""


@pytest.mark.parametrize("fused, operand", [("true", "kernel 'hand-off#1' in @main: operand 0: "), ("false", "decode 'hand-off#1' in @main: ")])
def test_wrong_payload_ends_with_the_message_of_the_cpu(tmp_path, fused, operand):
    (tmp_path / "model.mlir").write_text(HAND_OFF)
    for target in ("cpu", "cuda"):
        options = f"from=comm target={target} fuse-codecs={fused}"
        braidtest.run("braid-opt", tmp_path / "model.mlir", f"--braid-pipeline={options}", "--emit-bytecode", "-o", tmp_path / f"{target}.mlir")
    braidtest.braid("compile", tmp_path / "cpu.mlir", "-o", tmp_path / "cpu.braid")
    braidtest.braid("compile", tmp_path / "cuda.mlir", "--target", "cuda:sm_90a", "-o", tmp_path / "gpu.braid")
    braidtest.run("braid-test-cuda-on-host", tmp_path / "gpu.braid", "-o", tmp_path / "host.braid")
    expected = f"error: rank 1: {operand}part 0: expects a payload of fp8e4m3:128, got int8:128+symmetric"
    for bundle, options in (("cpu", []), ("host", ["--target", "cuda", "--cuda-library", NULL_DEVICE])):
        result = braidtest.braid("run", tmp_path / f"{bundle}.braid", "--random-inputs", 1, *options, expect=braidtest.BAD_INPUT)
        assert expected in result.err, result.err
