# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runs on a GPU. Used for preparing them, running them, and reporting results."""

FORMAT_VERSION = 3
FOLDER = "build-gpu"
CONTENTS = "contents.json"
LIBRARIES = "libraries"
PROGRAMS = ("braid-run", "BraidCudaBenchmark")
PROGRAMS_FOLDER = "programs"
SEED = 1
RANKS = (1, 2, 4)
ARCHITECTURES = ("sm_80", "sm_90a", "sm_100")
BUNDLE = ".braid.xz"  # bundles have machine code as it is, of which xz leaves a seventh

MODELS = {
    "minilm": {"family": "bert", "config": "test/gpu/models/minilm.json", "batch": 8, "seq": 128, "import": []},
    "smollm2": {"family": "llama", "config": "test/gpu/models/smollm2.json", "batch": 1, "seq": 32, "import": []},
    "llama-layer": {"family": "llama", "config": "examples/llama-layer/config.json", "batch": 1, "seq": 128,
                    "import": ["--layers", "1", "--result", "last_hidden_state"]},
}
SMALL_MODELS = {
    "minilm": {"family": "bert", "config": "test/Driver/Inputs/tiny-bert.json", "batch": 2, "seq": 8, "import": []},
    "smollm2": {"family": "llama", "config": "test/Driver/Inputs/tiny-llama.json", "batch": 1, "seq": 8, "import": []},
    "llama-layer": {"family": "llama", "config": "test/Driver/Inputs/tiny-llama.json", "batch": 1, "seq": 8,
                    "import": ["--layers", "1", "--result", "last_hidden_state"]},
}
# Models whose collectives are quantized, or whose matmuls are, by ranks. They are compared with the same on the CPU.
MATMULS = "matmuls "
QUANTIZED = {("minilm", 4): "*=int8:128", ("smollm2", 2): "*=int4:128+spikes/int8:128", ("llama-layer", 2): "*=mxfp8e4m3",
             ("smollm2", 1): f"{MATMULS}*=int8,lm_head=none", ("llama-layer", 1): f"{MATMULS}*=int8"}
# Where racecheck looks at what the models above do, it is not done within minutes.
TINY = {f"tiny-{name}": SMALL_MODELS[name] for name in ("minilm", "smollm2")}
TINY_RANKS = 2
QUANTIZED["tiny-smollm2", TINY_RANKS] = QUANTIZED["smollm2", 2]

# Programs of encoded collectives, by what their cases are and ranks: the covering array of test/Integration, an all_reduce of every
# encoding between kernels, which take its codecs into themselves, and a reduce_scatter and an all_gather of every encoding in
# CODECS, whose codecs are kernels.
ENCODED = (("encoded-covering", 2), ("encoded-covering", 4), ("encoded-sums", 2), ("encoded-sums", 4), ("encoded-codecs", 2))
ENCODED_FOLDER = "encoded"
ENCODED_SEED = 7
ENCODED_TYPES = ("f32", "bf16")
WAYS = {"one GPU": (), "one GPU, copied payloads": ("--copy-payloads",), "one GPU, as a graph": ("--cuda-graph", "--repeat", "3")}
# Encodings whose codecs are timed, with the code of this program, for values and payloads of these bytes in all.
CODECS = ("int8:128", "int6:128", "int4:128", "int5:128+spikes", "int4:128+spikes", "int2:32+spikes", "int8:128+hadamard64",
          "fp8e4m3:128", "mxfp8e4m3", "mxfp4", "nvfp4")
CODECS_PROGRAM = ("encoded-codecs", 2)
CODECS_BYTES = (512 << 20, 1 << 20)

# compute-sanitizer slows everything down many times, racecheck most: it looks at every access to shared memory.
SANITIZED = [(tool, model, 2, encoding) for tool in ("memcheck", "synccheck")
             for model, encoding in (("minilm", None), ("smollm2", QUANTIZED["smollm2", 2]))]
SANITIZED += [("racecheck", model, TINY_RANKS, QUANTIZED.get((model, TINY_RANKS))) for model in TINY]
SANITIZED += [(tool, model, count, None) for tool in ("memcheck", "synccheck", "racecheck") for model, count in ENCODED if count == 2]
# Of what is measured, in this order; the results have them under these names.
PARTS = ("runs", "encoded", "kernels", "codecs", "sanitizers", "pytorch")


def encodings(model, count):
    """Those that a model is compiled with for this many ranks; None: it is not quantized."""
    return [None, QUANTIZED[model, count]] if (model, count) in QUANTIZED else [None]


def options(encoding):
    """What `braid compile` and `braid run` are given for one of these."""
    if not encoding:
        return []
    matmuls = encoding.removeprefix(MATMULS)
    return ["--quantize", encoding] if matmuls == encoding else ["--quantize-matmuls", matmuls]


def variant(count, encoding):
    """The name of a bundle without its suffix."""
    return f"tp{count}-quantized" if encoding else f"tp{count}"


def runs(models=tuple(MODELS), ranks=RANKS):
    """Every configuration: all ranks on one GPU, the same as one graph, and one GPU for each rank."""
    for model in models:
        for count in ranks:
            for encoding in encodings(model, count):
                run = {"model": model, "ranks": count, "encoding": encoding}
                yield {**run, "transport": "threads", "graph": False}
                yield {**run, "transport": "threads", "graph": True}
                if count > 1:
                    yield {**run, "transport": "nccl", "graph": False}


def pytorch(models=tuple(MODELS)):
    """What PyTorch is timed with: each model run by run, and as one graph."""
    return [{"model": model, "graph": graph} for model in models for graph in (False, True)]


def encoded(ranks=RANKS):
    """Every run of a program of encoded collectives."""
    for program, count in ENCODED:
        if count in ranks:
            for way in WAYS:
                yield {"model": program, "ranks": count, "encoding": None, "way": way}
