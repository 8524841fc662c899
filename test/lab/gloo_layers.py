# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A rank of tensor-parallel LLaMA layers in PyTorch, whose sums go over Gloo: gloo_layers.py CONFIG.json LAYERS TOKENS REPEAT
with torchrun's variables. Prints a line of JSON: the median of REPEAT runs, and the share of a processor that they took."""
import json
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F

torch.set_num_threads(1)


class Layer:
    """A rank's shard: its heads and its part of the feed-forward, with random weights."""

    def __init__(self, config, ranks, generator):
        hidden, heads, shared = config["hidden_size"], config["num_attention_heads"], config["num_key_value_heads"]
        self.eps, self.size = config["rms_norm_eps"], hidden // heads
        self.heads, self.shared, inner = heads // ranks, shared // ranks, config["intermediate_size"] // ranks

        def weight(rows, columns):
            return torch.empty(rows, columns).normal_(0, 0.02, generator=generator)
        self.query, self.key, self.value = (weight(n * self.size, hidden) for n in (self.heads, self.shared, self.shared))
        self.output = weight(hidden, self.heads * self.size)
        self.gate, self.up, self.down = weight(inner, hidden), weight(inner, hidden), weight(hidden, inner)
        self.norms = torch.ones(2, hidden)

    def rotate(self, x, cos, sin):
        half = self.size // 2
        return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin

    def __call__(self, x, cos, sin):
        tokens = x.shape[0]

        def split(y, heads):
            return y.view(tokens, heads, self.size).transpose(0, 1)
        h = F.rms_norm(x, x.shape[-1:], self.norms[0], self.eps)
        query = self.rotate(split(F.linear(h, self.query), self.heads), cos, sin)
        key = self.rotate(split(F.linear(h, self.key), self.shared), cos, sin)
        value = split(F.linear(h, self.value), self.shared)
        each = self.heads // self.shared
        context = F.scaled_dot_product_attention(query[None], key.repeat_interleave(each, 0)[None],
                                                 value.repeat_interleave(each, 0)[None], is_causal=True)[0]
        out = F.linear(context.transpose(0, 1).reshape(tokens, -1), self.output)
        dist.all_reduce(out)
        x = x + out
        h = F.rms_norm(x, x.shape[-1:], self.norms[1], self.eps)
        out = F.linear(F.silu(F.linear(h, self.gate)) * F.linear(h, self.up), self.down)
        dist.all_reduce(out)
        return x + out


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        config = json.load(file)
    layers, tokens, repeat = map(int, sys.argv[2:5])
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    generator = torch.Generator().manual_seed(rank)
    model = [Layer(config, ranks, generator) for _ in range(layers)]
    x = torch.empty(tokens, config["hidden_size"]).normal_(generator=torch.Generator().manual_seed(0))
    angles = torch.arange(tokens)[:, None] / config["rope_theta"] ** (torch.arange(0, model[0].size, 2) / model[0].size)
    cos, sin = torch.cat((angles, angles), -1).cos(), torch.cat((angles, angles), -1).sin()
    times = []
    with torch.inference_mode():
        for i in range(repeat + 1):
            if i == 1:
                processor = time.process_time()
            begin = time.perf_counter()
            y = x
            for layer in model:
                y = layer(y, cos, sin)
            times.append(time.perf_counter() - begin)
    processor = time.process_time() - processor
    # Every rank has the sum of all.
    same = [torch.empty(()) for _ in range(ranks)]
    dist.all_gather(same, y.double().norm().float())
    if not all(torch.equal(one, same[0]) and one.isfinite() for one in same):
        raise RuntimeError(f"ranks have different results: {same}")
    print(json.dumps({"rank": rank, "median_s": sorted(times[1:])[repeat // 2], "processor_share": processor / sum(times[1:])}),
          flush=True)
    dist.barrier()
    dist.destroy_process_group()


main()
