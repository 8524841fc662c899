# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small seeded models of every family and option, made by transformers."""
import dataclasses
import json
import pathlib

import models


@dataclasses.dataclass(frozen=True)
class Small:
    """A model given by the names of its classes. Sizes differ from each other, so that a confusion of two dimensions is
    noticed. `old_rope` replaces rope_parameters in the configuration, as before transformers 5."""
    name: str
    config: str
    model: str
    fields: dict = dataclasses.field(hash=False)
    seed: int = 1
    output: str = "logits"
    batch: int = 3
    seq: int = 9
    lengths: tuple = (9, 1, 5)
    old_rope: dict = dataclasses.field(default=None, hash=False)
    ask: tuple = ()  # options of the import


def llama(name, fields=(), **kwargs):
    sizes = dict(hidden_size=32, num_attention_heads=4, num_key_value_heads=2, num_hidden_layers=2, intermediate_size=72,
                 vocab_size=61, max_position_embeddings=24, rms_norm_eps=1e-5, tie_word_embeddings=False)
    return Small(name, "LlamaConfig", kwargs.pop("model", "LlamaForCausalLM"), {**sizes, **dict(fields)}, **kwargs)


def gpt2(name, fields=(), **kwargs):
    sizes = dict(n_embd=32, n_head=4, n_layer=2, vocab_size=61, n_positions=24)
    return Small(name, "GPT2Config", kwargs.pop("model", "GPT2LMHeadModel"), {**sizes, **dict(fields)}, **kwargs)


def roberta(name, fields=(), **kwargs):
    sizes = dict(hidden_size=32, num_attention_heads=4, num_hidden_layers=2, intermediate_size=72, vocab_size=61,
                 max_position_embeddings=24, type_vocab_size=1, pad_token_id=1, layer_norm_eps=1e-5)
    return Small(name, kwargs.pop("config", "RobertaConfig"), kwargs.pop("model", "RobertaModel"), {**sizes, **dict(fields)},
                 output=kwargs.pop("output", models.OUTPUT), **kwargs)


LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}

LLAMAS = [
    llama("llama", seed=31),
    llama("llama-biases-tied", {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "head_dim": 12,
                                "num_key_value_heads": 4}, seed=32),
    llama("llama-one-kv-head", {"num_key_value_heads": 1, "rope_parameters": {"rope_type": "default", "rope_theta": 500.0}},
          seed=33, old_rope={"rope_theta": 500.0}),
    llama("llama-3", {"rope_parameters": {"rope_type": "llama3", "rope_theta": 100.0, **LLAMA3}}, seed=34,
          old_rope={"rope_theta": 100.0, "rope_scaling": {"rope_type": "llama3", **LLAMA3}}),
    llama("llama-linear", {"rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}}, seed=35,
          old_rope={"rope_scaling": {"type": "linear", "factor": 4.0}}),
    # The sequence is longer than the length that the model was trained for.
    llama("llama-dynamic", {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0},
                            "max_position_embeddings": 6}, seed=36,
          old_rope={"rope_theta": 10000.0, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}),
    llama("llama-relu2", {"hidden_act": "relu2"}, seed=38),
    llama("llama-no-head", model="LlamaModel", output="last_hidden_state", seed=37),
]
GPT2S = [
    gpt2("gpt2", seed=41),
    gpt2("gpt2-untied", {"tie_word_embeddings": False, "n_inner": 72, "activation_function": "gelu",
                         "layer_norm_epsilon": 1e-4}, seed=42),
    gpt2("gpt2-quick-gelu", {"activation_function": "quick_gelu"}, seed=44),
    gpt2("gpt2-no-head", model="GPT2Model", output="last_hidden_state", seed=43),
]
ROBERTAS = [
    roberta("roberta", seed=51),
    # Positions are counted from the padding id, wherever it is.
    roberta("xlm-roberta", {"pad_token_id": 4, "type_vocab_size": 2, "hidden_act": "gelu_new"}, config="XLMRobertaConfig",
            model="XLMRobertaModel", seed=52),
    roberta("roberta-logits", {"hidden_act": "gelu_new"}, model="RobertaForMaskedLM", output="logits",
            ask=("--result", "logits"), seed=53),
    # 70 columns are padded with zeros for 3 and 4 ranks, and this function maps zero to 1/2.
    roberta("roberta-sigmoid", {"hidden_act": "sigmoid", "intermediate_size": 70}, seed=56),
]
BERTS = [
    roberta(name, {"type_vocab_size": 2, "pad_token_id": 0, "hidden_act": "gelu_new", "tie_word_embeddings": tied},
            config="BertConfig", model="BertForMaskedLM", output="logits", ask=("--result", "logits"), seed=seed)
    for name, tied, seed in (("bert-logits", True, 54), ("bert-logits-untied", False, 55))
]
ALL = LLAMAS + GPT2S + ROBERTAS + BERTS


def build(small):
    """Makes the model in PyTorch. A new model has zero biases, unit norms and weights so small that attention is nearly
    uniform. All of that would hide mistakes, so all weights are redrawn and larger."""
    import torch
    import transformers
    config = getattr(transformers, small.config)(**small.fields)
    config._attn_implementation = "eager"
    model = getattr(transformers, small.model)(config).float().eval()
    generator = torch.Generator().manual_seed(small.seed)
    conv1d = {id(module.weight) for module in model.modules() if type(module).__name__ == "Conv1D"}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.ndim == 1:
                parameter.copy_(1.0 + 0.2 * noise if name.endswith("weight") else 0.3 * noise)
            elif any(part in name for part in ("embed", "wte", "wpe")):
                parameter.copy_(noise)
            else:
                parameter.copy_(noise * 1.5 / parameter.shape[0 if id(parameter) in conv1d else 1] ** 0.5)
    return model


def make_inputs(small):
    inputs = models.make_inputs({"vocab_size": small.fields["vocab_size"]}, small.batch, small.seq, small.lengths,
                                seed=small.seed)
    if small.name in [other.name for other in ROBERTAS + BERTS]:
        # Padded positions have the padding id; a few tokens may have it by chance.
        inputs["input_ids"][inputs["attention_mask"] == 0] = small.fields["pad_token_id"]
        inputs["input_ids"][0, 3] = small.fields["pad_token_id"]
        inputs["token_type_ids"] %= small.fields["type_vocab_size"]
        return inputs
    return {name: inputs[name] for name in ("input_ids", "attention_mask")}


def output(small, model, inputs):
    import torch
    with torch.no_grad():
        return getattr(model(**{k: torch.from_numpy(v) for k, v in inputs.items()}), small.output).numpy()


def spell_old_rope(small, directory):
    """Rewrites the configuration as versions before transformers 5 wrote it."""
    path = pathlib.Path(directory) / "config.json"
    config = json.loads(path.read_text())
    del config["rope_parameters"]
    path.write_text(json.dumps({**config, **small.old_rope}))
