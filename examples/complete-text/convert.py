#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a GGUF file of a LLaMA as a Hugging Face directory: config.json, model.safetensors in f32, tokenizer.json.

    build/venv/bin/python examples/complete-text/convert.py model.gguf DIRECTORY
"""
import json
import os
import pathlib
import sys

import gguf
import numpy as np
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

LAYER_NAMES = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
               "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
               "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
MODEL_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
# The type of control tokens in tokenizer.ggml.token_type.
CONTROL = 3


def hugging_face_name(name):
    base, kind = name.rsplit(".", 1)
    if base in MODEL_NAMES:
        return f"{MODEL_NAMES[base]}.{kind}"
    _, layer, weight = base.split(".")
    return f"model.layers.{layer}.{LAYER_NAMES[weight]}.{kind}"


def separate_pairs(weight, heads):
    """GGUF stores the two elements of a rotary pair next to each other, Hugging Face half a head away from each other."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def read_config(fields, tied):
    def get(name):
        return fields[f"llama.{name}"].contents()

    if any(name.startswith("llama.rope.scaling") for name in fields):
        sys.exit("convert: error: scaled rotary embedding is not supported")
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
            "vocab_size": len(fields["tokenizer.ggml.tokens"].data), "hidden_size": get("embedding_length"),
            "intermediate_size": get("feed_forward_length"), "num_hidden_layers": get("block_count"),
            "num_attention_heads": get("attention.head_count"), "num_key_value_heads": get("attention.head_count_kv"),
            "max_position_embeddings": get("context_length"), "rms_norm_eps": float(get("attention.layer_norm_rms_epsilon")),
            "rope_theta": float(get("rope.freq_base")), "attention_bias": False, "mlp_bias": False,
            "tie_word_embeddings": tied, "bos_token_id": fields["tokenizer.ggml.bos_token_id"].contents(),
            "eos_token_id": fields["tokenizer.ggml.eos_token_id"].contents()}


def read_weights(reader, config):
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    weights = {}
    for tensor in reader.tensors:
        value = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        name = tensor.name.split(".")[-2]
        if name in heads:
            value = separate_pairs(value, heads[name])
        weights[hugging_face_name(tensor.name)] = np.ascontiguousarray(value)
    return weights


def read_tokenizer(fields):
    """Byte pairs as in GPT-2; each digit is a token of its own in SmolLM's."""
    if fields["tokenizer.ggml.pre"].contents() != "smollm":
        sys.exit(f"convert: error: expects a tokenizer of kind smollm, got {fields['tokenizer.ggml.pre'].contents()}")
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    kinds = fields["tokenizer.ggml.token_type"].contents()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False)
                                  for token, kind in zip(tokens, kinds) if kind == CONTROL])
    return tokenizer


def convert(source, directory):
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    reader = gguf.GGUFReader(source)
    fields = reader.fields
    if fields["general.architecture"].contents() != "llama":
        sys.exit(f"convert: error: {source}: expects a model of architecture llama, got "
                 f"{fields['general.architecture'].contents()}")
    config = read_config(fields, tied=all(tensor.name != "output.weight" for tensor in reader.tensors))
    read_tokenizer(fields).save(str(directory / "tokenizer.json"))
    # The weights are written last and renamed when complete: a directory that has them is complete.
    config["_name_or_path"] = pathlib.Path(source).name.split(".")[0]
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    partial = directory / "model.safetensors.part"
    save_file(read_weights(reader, config), partial)
    os.replace(partial, directory / "model.safetensors")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    convert(sys.argv[1], sys.argv[2])
