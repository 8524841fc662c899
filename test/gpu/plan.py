# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runs on a GPU. Used for preparing them, running them, and reporting results."""

FORMAT_VERSION = 2
FOLDER = "build-gpu"
CONTENTS = "contents.json"
LIBRARIES = "libraries"
SEED = 1
RANKS = (1, 2, 4)

MODELS = {
    "minilm": {"family": "bert", "config": "test/gpu/models/minilm.json", "batch": 8, "seq": 128, "import": []},
    "smollm2": {"family": "llama", "config": "test/gpu/models/smollm2.json", "batch": 1, "seq": 64, "import": []},
    "llama-layer": {"family": "llama", "config": "examples/llama-layer/config.json", "batch": 1, "seq": 128,
                    "import": ["--layers", "1", "--result", "last_hidden_state"]},
}
SMALL_MODELS = {
    "minilm": {"family": "bert", "config": "test/Driver/Inputs/tiny-bert.json", "batch": 2, "seq": 8, "import": []},
    "smollm2": {"family": "llama", "config": "test/Driver/Inputs/tiny-llama.json", "batch": 1, "seq": 8, "import": []},
    "llama-layer": {"family": "llama", "config": "test/Driver/Inputs/tiny-llama.json", "batch": 1, "seq": 8,
                    "import": ["--layers", "1", "--result", "last_hidden_state"]},
}
# Models whose collectives are quantized, by ranks. They are compared with the same on the CPU.
QUANTIZED = {("minilm", 4): "*=int8:128", ("smollm2", 2): "*=int4:128+spikes/int8:128", ("llama-layer", 2): "*=mxfp8e4m3"}
# compute-sanitizer slows everything down many times, so it runs two models, each with two ranks on one GPU.
SANITIZED = (("minilm", 2, None), ("smollm2", 2, QUANTIZED["smollm2", 2]))
SANITIZERS = ("memcheck", "racecheck", "synccheck")


def encodings(model, count):
    """Those that a model is compiled with for this many ranks; None: it is not quantized."""
    return [None, QUANTIZED[model, count]] if (model, count) in QUANTIZED else [None]


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
