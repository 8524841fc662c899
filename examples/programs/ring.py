# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints the program of a rank for an all_gather and a matmul as a ring.

Every rank multiplies the part that it holds while it passes that part on to its neighbour. At step i the rank at position p
holds part p - i, so that the place of a product in the result depends on the rank: comm.assemble puts it there. With
--both-ways, half of each part travels up and the other half down.
"""
import argparse

ROWS, WIDTH = 4, 16


def ring(ranks, name, rows, step):
    """Lines of a ring whose parts have `rows` rows and travel by `step` positions."""
    part, whole = f"tensor<1x{rows}x{WIDTH}xf32>", f"tensor<{ranks}x{rows}x{WIDTH}xf32>"
    pairs = ", ".join(f"{r} -> {(r + step) % ranks}" for r in range(ranks))
    for i in range(ranks):
        held, last = f"%{name}{i}", i + 1 == ranks
        if not last:
            yield f"""  %{name}h{i} = comm.start (%a = {held}) : {part} -> !comm.handle<{part}> {{
    %v = comm.permute(%a) pairs [{pairs}] over <@mesh, {{tp}}> role "{name}.{i}" : {part}
    comm.yield %v : {part}
  }}"""
        yield f'  %{name}p{i} = nn.linear {held}, %w role "{name}.{i}" : {part}, tensor<{WIDTH}x{WIDTH}xf32> -> {part}'
        if not last:
            yield f"  %{name}{i + 1} = comm.wait %{name}h{i} keeping {held} : !comm.handle<{part}>, {part} -> {part}"
    products = ", ".join(f"%{name}p{i}" for i in range(ranks))
    shifts = ", ".join(str(-step * i) for i in range(ranks))
    yield (f"  %{name} = comm.assemble {products} shifts [{shifts}] dim 0 over <@mesh, {{tp}}> : "
           f"{', '.join([part] * ranks)} -> {whole}")


def program(ranks, both_ways):
    half = ROWS // 2
    local, whole = f"tensor<1x{ROWS}x{WIDTH}xf32>", f"tensor<{ranks}x{ROWS}x{WIDTH}xf32>"
    yield f"""comm.mesh @mesh <tp = {ranks}>
func.func @main(
    %x: {local} {{nn.name = "x", comm.global_type = {whole}, comm.sharding = #comm.sharding<@mesh, [{{tp}}, {{}}, {{}}]>}})
    -> ({whole} {{nn.name = "y", comm.global_type = tensor<{ranks}x{ROWS}x{WIDTH * ranks}xf32>, comm.sharding = #comm.sharding<@mesh, [{{}}, {{}}, {{tp}}]>}})
    attributes {{nn.entry}} {{
  %w = nn.parameter "w" of tensor<{WIDTH * ranks}x{WIDTH}xf32> sharded <@mesh, [{{tp}}, {{}}]> : tensor<{WIDTH}x{WIDTH}xf32>
  %n = nn.activation silu %x : {local}"""
    if both_ways:
        part, parts = f"tensor<1x{half}x{WIDTH}xf32>", f"tensor<{ranks}x{half}x{WIDTH}xf32>"
        yield f"  %up0 = nn.slice %n dim 1 from 0 size {half} : {local} -> {part}"
        yield f"  %down0 = nn.slice %n dim 1 from {half} size {half} : {local} -> {part}"
        yield from ring(ranks, "up", half, 1)
        yield from ring(ranks, "down", half, -1)
        yield f"  %y = nn.concat %up, %down dim 1 : {parts}, {parts} -> {whole}\n  return %y : {whole}\n}}"
    else:
        yield from (line.replace("%up0", "%n") for line in ring(ranks, "up", ROWS, 1))
        yield f"  return %up : {whole}\n}}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ranks", type=int, help="ranks of the ring, at least 2")
    parser.add_argument("--both-ways", action="store_true", help="half of each part travels in each direction")
    options = parser.parse_args()
    if options.ranks < 2:
        parser.error(f"expects at least 2 ranks, got {options.ranks}")
    print("\n".join(program(options.ranks, options.both_ways)))


if __name__ == "__main__":
    main()
