# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints the program of a pipeline that trains on micro-batches, in the order one forward, one backward (1F1B).

Stage s is y = (x U^T)^2 D^T on the ranks with pp = s. Its forward pass receives x from the stage before and sends y to the
next one; its backward pass receives the gradient of y, adds to the gradients of U and D, and sends that of x. The gradient of
the last stage's y is y + t, where t is the negative of the target. Each pass is a function of its own that only the ranks of its stage run (comm.on), so that
nothing is computed where a stage waits. With --tp, the ranks of a stage share its matrices.
"""
import argparse

ROWS, WIDTH, HIDDEN = 8, 16, 32


def tensor(*sizes):
    return f"tensor<{'x'.join(map(str, sizes))}xf32>"


def stage(s, stages, tp):
    """The functions of stage s: forward, and backward for the first micro-batch and for the others, which add."""
    x, h, u, d = tensor(ROWS, WIDTH), tensor(ROWS, HIDDEN // tp), tensor(HIDDEN // tp, WIDTH), tensor(WIDTH, HIDDEN // tp)
    first, last = s == 0, s + 1 == stages

    def message(what, source, target, tag, role):
        return f"{what} pairs [{source} -> {target}] over <@mesh, {{pp}}> tag {tag} role \"{role}\" : {x}"

    def reduced(name, role):
        if tp == 1:
            return name
        print(f'  {name}.sum = comm.all_reduce sum({name}) over <@mesh, {{tp}}> role "{role}" : {x}')
        return f"{name}.sum"

    arguments = [f"%u: {u}", f"%d: {d}"] + ([f"%x: {x}"] if first else [])
    print(f"func.func private @forward{s}({', '.join(arguments)}) -> ({', '.join([x] * (not first) + [h, h] + [x] * last)}) {{")
    if not first:
        print(f'  %x = {message("comm.recv", s - 1, s, 0, "activation")}')
    print(f'  %z = nn.linear %x, %u role "up" : {x}, {u} -> {h}')
    print(f"  %h = nn.mul %z, %z : {h}, {h} -> {h}")
    print(f'  %y = nn.linear %h, %d role "down" : {h}, {d} -> {x}')
    y = reduced("%y", "down")
    if not last:
        print("  " + message(f"comm.send({y})", s, s + 1, 0, "activation"))
    print(f"  return {', '.join(['%x'] * (not first) + ['%z', '%h'] + [y] * last)} : {', '.join([x] * (not first) + [h, h] + [x] * last)}\n}}")

    for adds in (False, True):
        arguments = [f"%u: {u}", f"%d: {d}", f"%x: {x}", f"%z: {h}", f"%h: {h}"] + [f"%y: {x}", f"%t: {x}"] * last
        arguments += [f"%su: {u}", f"%sd: {d}"] * adds
        print(f"func.func private @backward{s}{'' if adds else '_first'}({', '.join(arguments)}) -> ({u}, {d}) {{")
        if last:
            print(f"  %dy = nn.add %y, %t : {x}, {x} -> {x}")
        else:
            print(f'  %dy = {message("comm.recv", s + 1, s, 1, "gradient")}')
        plus = [f" plus %s{m} : {t}" if adds else "" for m, t in (("u", u), ("d", d))]
        print(f'  %gd = nn.matmul %dy transposed, %h{plus[1]} role "down.gradient" : {x}, {h} -> {d}')
        print(f'  %dh = nn.matmul %dy, %d role "down.backward" : {x}, {d} -> {h}')
        print(f"  %twice = nn.add %z, %z : {h}, {h} -> {h}")
        print(f"  %dz = nn.mul %dh, %twice : {h}, {h} -> {h}")
        if not first:
            print(f'  %dx = nn.matmul %dz, %u role "up.backward" : {h}, {u} -> {x}')
            print("  " + message(f'comm.send({reduced("%dx", "up.backward")})', s, s - 1, 1, "gradient"))
        print(f'  %gu = nn.matmul %dz transposed, %x{plus[0]} role "up.gradient" : {h}, {x} -> {u}')
        print(f"  return %gu, %gd : {u}, {d}\n}}")


def schedule(stages, batches):
    """The passes of all stages, (stage, is forward, micro-batch): 1F1B on each, and no pass before those that it waits for."""
    lists = []
    for s in range(stages):
        warm = min(stages - 1 - s, batches)
        passes = [(True, m) for m in range(warm)]
        for m in range(batches - warm):
            passes += [(True, warm + m), (False, m)]
        lists.append(passes + [(False, m) for m in range(batches - warm, batches)])
    done, order = set(), []
    while any(lists):
        for s in range(stages):
            if not lists[s]:
                continue
            forward, m = lists[s][0]
            before = s - 1 if forward else s + 1
            if before in (-1, stages) or (before, forward, m) in done:
                done.add((s, forward, m))
                order.append((s, *lists[s].pop(0)))
    return order


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stages", type=int, help="stages of the pipeline, at least 2")
    parser.add_argument("micro_batches", type=int, help="micro-batches, at least 1")
    parser.add_argument("--tp", type=int, default=1, help=f"ranks of a stage, a divisor of {HIDDEN}")
    options = parser.parse_args()
    stages, batches, tp = options.stages, options.micro_batches, options.tp
    if stages < 2 or batches < 1 or tp < 1 or HIDDEN % tp:
        parser.error(f"expects at least 2 stages and 1 micro-batch, and a divisor of {HIDDEN} ranks per stage")

    x, h, u, d = tensor(ROWS, WIDTH), tensor(ROWS, HIDDEN // tp), tensor(HIDDEN // tp, WIDTH), tensor(WIDTH, HIDDEN // tp)
    whole = {"u": tensor(HIDDEN, WIDTH), "d": tensor(WIDTH, HIDDEN)}
    dims = {"u": "[{tp}, {}]", "d": "[{}, {tp}]"}

    def on(s):
        return f"#comm.place<@mesh, {{pp = [{s}]}}>"

    def value(name, s, which=None):
        split = f", comm.global_type = {whole[which]}, comm.sharding = #comm.sharding<@mesh, {dims[which]}>" if which and tp > 1 else ""
        return f'{{nn.name = "{name}", comm.on = {on(s)}{split}}}'

    print(f"comm.mesh @mesh <pp = {stages}{f', tp = {tp}' if tp > 1 else ''}>")
    for s in range(stages):
        stage(s, stages, tp)
    arguments = [f"%x{m}: {x} {value(f'x{m}', 0)}" for m in range(batches)]
    arguments += [f"%t{m}: {x} {value(f't{m}', stages - 1)}" for m in range(batches)]
    results = [f"{x} {value(f'y{m}', stages - 1)}" for m in range(batches)]
    for s in range(stages):
        results += [f"{u} {value(f'up{s}', s, 'u')}", f"{d} {value(f'down{s}', s, 'd')}"]
    print(f"func.func @main(\n    {', '.join(arguments)})\n    -> ({', '.join(results)})\n    attributes {{nn.entry}} {{")
    for s in range(stages):
        for which, local in (("u", u), ("d", d)):
            split = f" of {whole[which]} sharded <@mesh, {dims[which]}>" if tp > 1 else ""
            print(f'  %{which}{s} = nn.parameter "{which}.{s}"{split} on <@mesh, {{pp = [{s}]}}> : {local}')
    for s, forward, m in schedule(stages, batches):
        first, last = s == 0, s + 1 == stages
        place = f"{{comm.on = {on(s)}}}"
        if forward:
            given, types = [f"%u{s}", f"%d{s}"] + [f"%x{m}"] * first, [u, d] + [x] * first
            taken = [f"%x{m}.{s}"] * (not first) + [f"%z{m}.{s}", f"%h{m}.{s}"] + [f"%y{m}"] * last
            print(f"  {', '.join(taken)} = func.call @forward{s}({', '.join(given)}) {place} : ({', '.join(types)}) -> "
                  f"({', '.join([x] * (not first) + [h, h] + [x] * last)})")
            continue
        adds = m > 0
        given = [f"%u{s}", f"%d{s}", f"%x{m}" if first else f"%x{m}.{s}", f"%z{m}.{s}", f"%h{m}.{s}"]
        given += [f"%y{m}", f"%t{m}"] * last + [f"%gu{m - 1}.{s}", f"%gd{m - 1}.{s}"] * adds
        types = [u, d, x, h, h] + [x, x] * last + [u, d] * adds
        print(f"  %gu{m}.{s}, %gd{m}.{s} = func.call @backward{s}{'' if adds else '_first'}({', '.join(given)}) {place} : "
              f"({', '.join(types)}) -> ({u}, {d})")
    end = [f"%y{m}" for m in range(batches)]
    for s in range(stages):
        end += [f"%gu{batches - 1}.{s}", f"%gd{batches - 1}.{s}"]
    print(f"  return {', '.join(end)} : {', '.join([x] * batches + [u, d] * stages)}\n}}")


if __name__ == "__main__":
    main()
