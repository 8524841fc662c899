# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints the program of a rank whose weights are stored cut over the ranks that share a batch.

Each of two ranks holds half of every weight, and gathers the weights of a layer before it needs them: those of layer k + 1 while
layer k computes. The whole weights of two layers exist at any time, however many layers there are. With --inside, the layer itself
starts the gather of the next one's weights, and its handle crosses the calls. --model prints the model for one device instead.
"""
import argparse

RANKS, ROWS, WIDTH, INNER = 2, 4, 16, 64
X, UP, DOWN = f"tensor<{ROWS}x{WIDTH}xf32>", f"tensor<{INNER}x{WIDTH}xf32>", f"tensor<{WIDTH}x{INNER}xf32>"
UP_SHARD, DOWN_SHARD = f"tensor<{INNER // RANKS}x{WIDTH}xf32>", f"tensor<{WIDTH // RANKS}x{INNER}xf32>"
SHARDS, HANDLE = f"{UP_SHARD}, {DOWN_SHARD}", f"!comm.handle<{UP}, {DOWN}>"


def body(x):
    inner = x.replace(f"x{WIDTH}x", f"x{INNER}x")
    return f"""  %up = nn.linear %x, %w role "up" : {x}, {UP} -> {inner}
  %gelu = nn.activation gelu %up : {inner}
  %down = nn.linear %gelu, %v role "down" : {inner}, {DOWN} -> {x}
  %sum = nn.add %x, %down : {x}, {x} -> {x}"""


def gather(handle, weights, role):
    up, down = weights
    return f"""  {handle} = comm.start (%a = {up}, %b = {down}) : {SHARDS} -> {HANDLE} {{
    %p, %q = comm.all_gather(%a, %b) dim 0 over <@mesh, {{dp}}> role "{role}" : {SHARDS} -> {UP}, {DOWN}
    comm.yield %p, %q : {UP}, {DOWN}
  }}"""


def wait(layer):
    return (f"  %whole{layer}:2 = comm.wait %h{layer} keeping %up{layer}, %down{layer} : {HANDLE}, {SHARDS} -> {UP}, {DOWN}")


def program(layers, inside):
    """Lines of the program; the last layer gathers nothing."""
    yield f"comm.mesh @mesh <dp = {RANKS}>"
    if inside:
        yield f"""func.func private @layer(%x: {X}, %w: {UP}, %v: {DOWN}, %up_shard: {UP_SHARD}, %down_shard: {DOWN_SHARD})
    -> ({X}, {HANDLE}) {{
{gather("%next", ("%up_shard", "%down_shard"), "next")}
{body(X)}
  return %sum, %next : {X}, {HANDLE}
}}"""
    yield f"func.func private @{'last' if inside else 'layer'}(%x: {X}, %w: {UP}, %v: {DOWN}) -> {X} {{\n{body(X)}\n  return %sum : {X}\n}}"
    whole = f"tensor<{ROWS * RANKS}x{WIDTH}xf32>"
    cut = f"comm.global_type = {whole}, comm.sharding = #comm.sharding<@mesh, [{{dp}}, {{}}]>"
    yield f"func.func @main(%x0: {X} {{nn.name = \"x\", {cut}}}) -> ({X} {{nn.name = \"y\", {cut}}}) attributes {{nn.entry}} {{"
    for i in range(layers):
        yield f'  %up{i} = nn.parameter "layers.{i}.up" of {UP} sharded <@mesh, [{{dp}}, {{}}]> : {UP_SHARD}'
        yield f'  %down{i} = nn.parameter "layers.{i}.down" of {DOWN} sharded <@mesh, [{{dp}}, {{}}]> : {DOWN_SHARD}'
    yield gather("%h0", ("%up0", "%down0"), "layers.0")
    for i in range(layers):
        yield wait(i)
        last, values = i + 1 == layers, f"%x{i}, %whole{i}#0, %whole{i}#1"
        if inside and not last:
            yield (f"  %x{i + 1}, %h{i + 1} = call @layer({values}, %up{i + 1}, %down{i + 1}) : "
                   f"({X}, {UP}, {DOWN}, {SHARDS}) -> ({X}, {HANDLE})")
            continue
        if not last:
            yield gather(f"%h{i + 1}", (f"%up{i + 1}", f"%down{i + 1}"), f"layers.{i + 1}")
        yield f"  %x{i + 1} = call @{'last' if inside else 'layer'}({values}) : ({X}, {UP}, {DOWN}) -> {X}"
    yield f"  return %x{layers} : {X}\n}}"


def model(layers):
    x = f"tensor<{ROWS * RANKS}x{WIDTH}xf32>"
    yield f"func.func private @layer(%x: {x}, %w: {UP}, %v: {DOWN}) -> {x} {{\n{body(x)}\n  return %sum : {x}\n}}"
    yield f'func.func @main(%x0: {x} {{nn.name = "x"}}) -> ({x} {{nn.name = "y"}}) attributes {{nn.entry}} {{'
    for i in range(layers):
        yield f'  %up{i} = nn.parameter "layers.{i}.up" : {UP}'
        yield f'  %down{i} = nn.parameter "layers.{i}.down" : {DOWN}'
        yield f"  %x{i + 1} = call @layer(%x{i}, %up{i}, %down{i}) : ({x}, {UP}, {DOWN}) -> {x}"
    yield f"  return %x{layers} : {x}\n}}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layers", type=int, help="number of layers, at least 1")
    parser.add_argument("--inside", action="store_true", help="a layer starts the gather of the next one's weights")
    parser.add_argument("--model", action="store_true", help="the model for one device, with whole weights")
    options = parser.parse_args()
    if options.layers < 1:
        parser.error(f"expects at least 1 layer, got {options.layers}")
    print("\n".join(model(options.layers) if options.model else program(options.layers, options.inside)))


if __name__ == "__main__":
    main()
