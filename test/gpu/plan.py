# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runs on a GPU. Used for preparing them, running them, and reporting results."""

FORMAT_VERSION = 1
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
# compute-sanitizer slows everything down many times, so it runs one model, with two ranks on one GPU.
SANITIZED = ("minilm", 2)
SANITIZERS = ("memcheck", "racecheck", "synccheck")


def runs(models=tuple(MODELS), ranks=RANKS):
    """Every configuration: all ranks on one GPU, the same as one graph, and one GPU for each rank."""
    for model in models:
        for count in ranks:
            yield {"model": model, "ranks": count, "transport": "threads", "graph": False}
            yield {"model": model, "ranks": count, "transport": "threads", "graph": True}
            if count > 1:
                yield {"model": model, "ranks": count, "transport": "nccl", "graph": False}
