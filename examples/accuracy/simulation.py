# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What encoded all_reduces make of a model, computed by PyTorch without any part of Braid: an oracle for what encodings lose. As a program
it says by how much encodings increase the perplexity of SmolLM2 on three ranks, on sequences such as run.sh leaves in build/examples/accuracy."""
import argparse
import pathlib
import sys


def rounded_to_half(value, towards):
    """f16 that is no smaller (towards 1) or no larger (-1), as f32."""
    import torch
    half = value.half()
    beyond = half.float() < value if towards > 0 else half.float() > value
    return torch.where(beyond, torch.nextafter(half, torch.tensor(towards * torch.inf).half()), half).float()


def halves_of(encodings):
    """The arguments of quantized for the reduce and the gather half, of names like "int4:128+spikes/int8:128"."""
    pair = [[int(name[len("int")]), *name.split("+")[1:]] for name in encodings.split("/")]
    return pair[0], pair[-1]


def rotated(x, block):
    """Blocks of elements of the rows of x, each times the orthonormal Hadamard matrix, which undoes itself."""
    import torch
    matrix = torch.ones(1, 1)
    while len(matrix) < block:
        matrix = torch.kron(torch.tensor([[1.0, 1], [1, -1]]), matrix)
    return (x.unflatten(-1, (-1, block)) @ (matrix / block**0.5)).flatten(-2)


def quantized(x, bits, *options, group=128):
    """What `intN:128`, with the options "zero-point", "spikes" and "hadamard64", keeps of the rows of x, in groups of so many elements:
    multiples of a step above an offset, which is rounded down to f16, or from 0; steps are rounded up. Of a group's smallest and largest
    element, two largest and two smallest, the spikes are the pair without which the others have the smallest range; with "outer-spikes"
    in place of "spikes" always the first of these, as in Flash Communication V2."""
    import torch
    if "hadamard64" in options:
        return rotated(quantized(rotated(x, 64), bits, *[option for option in options if option != "hadamard64"], group=group), 64)
    zero_point, outer = "zero-point" in options, "outer-spikes" in options
    spikes = outer or "spikes" in options
    if not set(options) <= {"zero-point", "spikes", "outer-spikes"}:
        raise ValueError(f"the simulation has no encodings with {', '.join(options)}")
    parts = []
    for part in x.split(group, -1):
        inner = part
        if spikes:
            order, places = part.sort(-1)
            size = part.shape[-1] - 2
            # Without one of either end, the two largest, and the two smallest.
            spans = [(order[..., first:first + 1], order[..., first + size - 1:first + size]) for first in (1, 0, 2)]
            if zero_point:
                spans = [(low.clamp(max=0), high.clamp(min=0)) for low, high in spans]
            first = torch.tensor([1, 0, 2])[torch.cat([high - low for low, high in spans], -1).argmin(-1, keepdim=True)]
            first = torch.ones_like(first) if outer else first
            at = torch.arange(size + 2)
            exact = torch.zeros_like(part, dtype=torch.bool).scatter(-1, places, (at < first) | (at >= first + size))
            inner = part[~exact].reshape(*part.shape[:-1], size)
        least, most = inner.amin(-1, keepdim=True), inner.amax(-1, keepdim=True)
        offset = 0 * least if zero_point else rounded_to_half(least, -1)
        if zero_point:
            least, most = least.clamp(max=0), most.clamp(min=0)
        step = rounded_to_half((most - (least if zero_point else offset)) / (2**bits - 1), 1)
        divisor = torch.where(step == 0, 1, step)
        first = torch.round(least / divisor) if zero_point else 0 * least
        codes = torch.minimum(torch.maximum(torch.round((part - offset) / divisor), first), first + 2**bits - 1)
        kept = offset + codes * step
        parts.append(torch.where(exact, part, kept) if spikes else kept)
    return torch.cat(parts, -1)


class Simulation:
    """A PyTorch model that computes like so many ranks whose all_reduces are encoded: they add what they have of the rows of the
    linear layers that `replace` was called with. A rank adds what it has of its own rows as it is, unless `own_as_is` is false. `halves`
    are, for the reduce and the gather half, arguments of quantized behind x. `squares` has, for each all_reduce in the order of the
    model's and each half, the sums of squares of what was added or gathered since it was cleared, and of what encodings lost of it."""

    def __init__(self, model, ranks):
        self.model, self.halves, self.ranks, self.own_as_is = model, None, ranks, True
        self.squares, self.calls = {}, 0

    def encoded(self, x, half, as_is):
        """What the encoding of a half keeps of x, of which some rows [..., 1] stay as they are."""
        import torch
        kept = torch.where(as_is, x, quantized(x, *self.halves[half]))
        before = self.squares.get((self.calls, half), (0, 0))
        self.squares[self.calls, half] = tuple(old + float(more.double().square().sum()) for old, more in zip(before, (x, kept - x)))
        return kept

    def relative_errors(self):
        """Since `squares` was cleared: {(all_reduce, half): relative L2}."""
        return {key: (lost / whole)**0.5 for key, (whole, lost) in self.squares.items()}

    def replace(self, module, *names):
        """Puts sums of so many products as there are ranks in place of linear layers, which are attributes of the module."""
        import torch
        simulation = self

        class Sum(torch.nn.Module):
            def __init__(self, linear):
                super().__init__()
                self.weight, self.bias = linear.weight, linear.bias

            def forward(self, x):
                size = x.shape[-1] // simulation.ranks
                shards = zip(x.split(size, -1), self.weight.split(size, -1))
                total = simulation.sum([torch.nn.functional.linear(*own) for own in shards])
                return total if self.bias is None else total + self.bias
        for name in names:
            setattr(module, name, Sum(getattr(module, name)))

    def sum(self, parts):
        """Of parts [batch, sequence, columns], whose rows are those of all sequences together."""
        import torch
        if self.halves is None:
            return sum(parts)
        rows = parts[0].shape[:-1].numel()
        owner = (torch.arange(rows) // -(-rows // self.ranks)).reshape(*parts[0].shape[:-1], 1)
        total = sum(self.encoded(part, 0, (owner == rank) & self.own_as_is) for rank, part in enumerate(parts))
        total = self.encoded(total, 1, torch.tensor(False))
        self.calls += 1
        return total


def smollm2(model, ranks, embedding=True):
    """The ranks add what they have of the rows of each layer's attention and MLP, and of the embedding, which one of them has."""
    simulation = Simulation(model, ranks)
    for layer in model.model.layers:
        simulation.replace(layer.self_attn, "o_proj")
        simulation.replace(layer.mlp, "down_proj")
    shard = model.config.vocab_size // ranks
    if embedding:
        model.model.embed_tokens.register_forward_hook(
            lambda _, ids, rows: simulation.sum([rows * (ids[0] // shard == rank).unsqueeze(-1) for rank in range(ranks)]))
    return simulation


def likelihood(simulation, ids, halves=None):
    """The mean of the logarithms of the probabilities of the tokens of sequences, ids [sequences, tokens]."""
    import torch
    simulation.halves, logs = halves, []
    with torch.no_grad():
        for sequence in torch.from_numpy(ids).split(1):
            simulation.calls = 0
            rows = torch.log_softmax(simulation.model(sequence).logits[:, :-1], -1)
            logs.append(rows.gather(-1, sequence[:, 1:, None]))
    return float(torch.cat(logs).mean())


def main():
    import numpy as np
    import torch
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ids", metavar="IDS.npy", type=pathlib.Path, help="[sequences, tokens]")
    parser.add_argument("encodings", nargs="+", metavar="ENCODING", help='such as int4:128+spikes/int8:128; "outer-spikes" in place of "spikes" '
                        "are always the smallest and the largest element")
    parser.add_argument("--sequences", type=int, help="only so many (default: all)")
    parser.add_argument("--embedding", action="store_true", help="encode the embedding's all_reduce, too")
    parser.add_argument("--own-encoded", action="store_true", help="ranks encode their own parts, too")
    parser.add_argument("--perturb", type=float, default=0,
                        help="multiply weights by 1 plus so much times a normal number: what changes then is noise")
    parser.add_argument("--seed", type=int, default=1, help="of these numbers (default: 1)")
    args = parser.parse_args()
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "complete-text"))
    import complete
    pytorch = complete.pytorch_model()
    if not pytorch:
        sys.exit("simulation: error: needs PyTorch, which scripts/setup.sh installs")
    generator = torch.Generator().manual_seed(args.seed)
    with torch.no_grad():
        for parameter in pytorch.parameters():
            if args.perturb:
                parameter.mul_(1 + args.perturb * torch.randn(parameter.shape, generator=generator))
    model = smollm2(pytorch, 3, embedding=args.embedding)
    model.own_as_is = not args.own_encoded
    ids = np.load(args.ids)[:args.sequences]
    plain = likelihood(model, ids)
    print(f"perplexity {np.exp(-plain):.5f} on {len(ids)} sequences of {ids.shape[1]} tokens", flush=True)
    for name in args.encodings:
        print(f"{name}: {100 * (np.exp(plain - likelihood(model, ids, halves_of(name))) - 1):+.2f} %", flush=True)


if __name__ == "__main__":
    main()
