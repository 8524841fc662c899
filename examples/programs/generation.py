# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints a small decoder with a cache: entries that fill it, that add a token to it, and that do without.

The model has grouped-query attention with rotary embedding, rms_norm and a gated feed-forward, as LLaMA does, in two layers with
random weights. `prefill` takes a prompt and `decode` one token; both append the keys and values of their tokens to the
cache at a position that is an input, and attend to what the cache holds up to there. `whole` computes all positions at
once. The module is the whole model, at level nn: partitioning splits heads and cache alike.
"""
import argparse

BATCH, PROMPT, TOKENS = 2, 8, 20
CAPACITY = PROMPT + TOKENS
LAYERS, HEADS, KV_HEADS, HEAD_DIM, INNER, VOCABULARY = 2, 4, 2, 8, 48, 40
HIDDEN, KEYS = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
FREQUENCIES = [10000.0 ** (-i / (HEAD_DIM // 2)) for i in range(HEAD_DIM // 2)]


def tensor(*shape, element="f32"):
    return "tensor<" + "".join(f"{size}x" for size in shape) + element + ">"


CACHE, POSITION = tensor(BATCH, CAPACITY, KV_HEADS, HEAD_DIM), tensor(BATCH, element="i32")
WEIGHTS = [("input_layernorm", (HIDDEN,)), ("self_attn.q_proj", (HIDDEN, HIDDEN)), ("self_attn.k_proj", (KEYS, HIDDEN)),
           ("self_attn.v_proj", (KEYS, HIDDEN)), ("self_attn.o_proj", (HIDDEN, HIDDEN)), ("post_attention_layernorm", (HIDDEN,)),
           ("mlp.gate_proj", (INNER, HIDDEN)), ("mlp.up_proj", (INNER, HIDDEN)), ("mlp.down_proj", (HIDDEN, INNER))]


def layer(name, seq, cached):
    """One layer for `seq` tokens; with a cache it returns the cache's new values, too."""
    hidden, inner, table = tensor(BATCH, seq, HIDDEN), tensor(BATCH, seq, INNER), tensor(BATCH, seq, HEAD_DIM // 2)
    heads, kv_heads = tensor(BATCH, seq, HEADS, HEAD_DIM), tensor(BATCH, seq, KV_HEADS, HEAD_DIM)
    arguments = [("x", hidden), ("cos", table), ("sin", table)]
    arguments += [(f"w{i}", tensor(*shape)) for i, (_, shape) in enumerate(WEIGHTS)]
    arguments += [("position", POSITION), ("keys", CACHE), ("values", CACHE)] if cached else []
    results = [hidden, CACHE, CACHE] if cached else [hidden]

    def linear(result, operand, source, weight, role, out):
        return (f'  %{result} = nn.linear %{operand}, %w{weight} role "{role}" : '
                f"{source}, {tensor(*WEIGHTS[weight][1])} -> {out}")

    def projected(result, weight, role, split):
        width = WEIGHTS[weight][1][0]
        yield linear(f"{result}_flat", "n", hidden, weight, role, tensor(BATCH, seq, width))
        yield f"  %{result} = nn.split_heads %{result}_flat : {tensor(BATCH, seq, width)} -> {split}"

    yield f"func.func private @{name}({', '.join(f'%{arg}: {type}' for arg, type in arguments)}) -> ({', '.join(results)}) {{"
    yield f"  %n = nn.rms_norm %x, %w0 epsilon 1.0e-5 : {hidden}, {tensor(HIDDEN)} -> {hidden}"
    yield from projected("q", 1, "attention.query", heads)
    yield from projected("k", 2, "attention.key", kv_heads)
    yield from projected("v", 3, "attention.value", kv_heads)
    yield f"  %qr = nn.rotary %q, %cos, %sin : {heads}, {table}"
    yield f"  %kr = nn.rotary %k, %cos, %sin : {kv_heads}, {table}"
    scale = HEAD_DIM ** -0.5
    if cached:
        yield f"  %keys1 = nn.append %kr to %keys dim 1 at %position : {kv_heads}, {CACHE}, {POSITION}"
        yield f"  %values1 = nn.append %v to %values dim 1 at %position : {kv_heads}, {CACHE}, {POSITION}"
        yield (f"  %a = nn.attention causal %qr, %keys1, %values1 position_offset %position : {POSITION} scale {scale} : "
               f"{heads}, {CACHE}, {CACHE} -> {heads}")
    else:
        yield f"  %a = nn.attention causal %qr, %kr, %v scale {scale} : {heads}, {kv_heads}, {kv_heads} -> {heads}"
    yield f"  %m = nn.merge_heads %a : {heads} -> {hidden}"
    yield linear("o", "m", hidden, 4, "attention.output", hidden)
    yield f"  %r = nn.add %o, %x : {hidden}, {hidden} -> {hidden}"
    yield f"  %f = nn.rms_norm %r, %w5 epsilon 1.0e-5 : {hidden}, {tensor(HIDDEN)} -> {hidden}"
    yield linear("gate", "f", hidden, 6, "mlp.gate", inner)
    yield linear("up", "f", hidden, 7, "mlp.up", inner)
    yield f"  %act = nn.activation silu %gate : {inner}"
    yield f"  %gated = nn.mul %act, %up : {inner}, {inner} -> {inner}"
    yield linear("down", "gated", inner, 8, "mlp.down", hidden)
    yield f"  %y = nn.add %down, %r : {hidden}, {hidden} -> {hidden}"
    yield f"  return %y{', %keys1, %values1' if cached else ''} : {', '.join(results)}\n}}"


def entry(name, seq, cached):
    ids, hidden, logits = tensor(BATCH, seq, element="i32"), tensor(BATCH, seq, HIDDEN), tensor(BATCH, seq, VOCABULARY)
    table = tensor(BATCH, seq, HEAD_DIM // 2)
    states = [f"{part}.{i}" for i in range(LAYERS) for part in ("keys", "values")] if cached else []
    arguments = [f'%ids: {ids} {{nn.name = "ids", nn.below = {VOCABULARY} : i32}}',
                 f'%position: {POSITION} {{nn.name = "position", nn.default = 0 : i32, nn.below = {CAPACITY} : i32}}']
    arguments += [f'%{state.replace(".", "")}: {CACHE} {{nn.name = "{state}", nn.state}}' for state in states]
    results = [f'{logits} {{nn.name = "logits"}}'] + [f'{CACHE} {{nn.name = "{state}"}}' for state in states]
    indent = ",\n    "
    yield f"func.func @{name}(\n    {indent.join(arguments)})\n    -> ({indent.join(results)})\n    attributes {{nn.entry}} {{"
    weights = ", ".join(f"%w{i}" for i in range(len(WEIGHTS)))
    yield f'  %table = nn.parameter "model.embed_tokens.weight" : {tensor(VOCABULARY, HIDDEN)}'
    yield f'  %x0 = nn.embedding %ids, %table role "embedding.word" : {ids}, {tensor(VOCABULARY, HIDDEN)} -> {hidden}'
    yield f"  %cos, %sin = nn.rotary_table {FREQUENCIES} position_offset %position : {POSITION} : {table}"
    types = [hidden, table, table, *(tensor(*shape) for _, shape in WEIGHTS), *([POSITION, CACHE, CACHE] if cached else [])]
    outs = f"({', '.join([hidden, CACHE, CACHE])})" if cached else hidden
    for i in range(LAYERS):
        for w, (weight, shape) in enumerate(WEIGHTS):
            init = " init ones" if len(shape) == 1 else ""
            yield f'  %w{w}_{i} = nn.parameter "model.layers.{i}.{weight}.weight"{init} : {tensor(*shape)}'
        passed = weights.replace(",", f"_{i},") + f"_{i}"
        given = f", %position, %keys{i}, %values{i}" if cached else ""
        taken = f"%x{i + 1}, %newkeys{i}, %newvalues{i}".split(", ")
        yield (f"  {', '.join(taken if cached else taken[:1])} = func.call @{name}_layer(%x{i}, %cos, %sin, {passed}{given}) : "
               f"({', '.join(types)}) -> {outs}")
    yield f'  %norm = nn.parameter "model.norm.weight" init ones : {tensor(HIDDEN)}'
    yield f"  %n = nn.rms_norm %x{LAYERS}, %norm epsilon 1.0e-5 : {hidden}, {tensor(HIDDEN)} -> {hidden}"
    yield f'  %head = nn.parameter "lm_head.weight" : {tensor(VOCABULARY, HIDDEN)}'
    yield f'  %logits = nn.linear %n, %head role "lm_head" : {hidden}, {tensor(VOCABULARY, HIDDEN)} -> {logits}'
    returned = ["%logits"] + [f"%new{state.replace('.', '')}" for state in states]
    yield f"  return {', '.join(returned)} : {', '.join([logits] + [CACHE] * len(states))}\n}}"


def program():
    for name, seq, cached in (("prefill", PROMPT, True), ("decode", 1, True), ("whole", CAPACITY, False)):
        yield from layer(f"{name}_layer", seq, cached)
        yield from entry(name, seq, cached)


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print("\n".join(program()))


if __name__ == "__main__":
    main()
