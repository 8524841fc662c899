# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a small model with DistributedDataParallel; to be started by torchrun."""
import argparse

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--backend", default="braid", help="of torch.distributed: braid (the default), gloo")
parser.add_argument("--steps", type=int, default=20)
options = parser.parse_args()
if options.backend == "braid":
    import braid_c10d  # noqa: F401

torch.set_num_threads(1)
dist.init_process_group(options.backend)
rank, ranks = dist.get_rank(), dist.get_world_size()

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(32, 256), torch.nn.GELU(), torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.Linear(256, 8))
parallel = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(parallel.parameters(), lr=0.2, momentum=0.9)
examples = torch.Generator().manual_seed(1 + rank)  # every rank has its own
for step in range(options.steps):
    inputs = torch.randn(64, 32, generator=examples)
    loss = (parallel(inputs) - inputs[:, :8].sin()).square().mean()
    optimizer.zero_grad()
    loss.backward()  # the gradients of all ranks are averaged meanwhile
    optimizer.step()
    mean = loss.detach() / ranks
    dist.all_reduce(mean)
    if rank == 0:
        print(f"step {step + 1}: loss {mean.item():.9f}")
dist.destroy_process_group()
