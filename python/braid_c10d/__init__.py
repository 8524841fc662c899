# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The backend "braid" of torch.distributed: collectives on CPU tensors, between processes, over UCX.

    import braid_c10d
    torch.distributed.init_process_group("braid")
"""
import torch.distributed

from ._braid_c10d import Backend


def _create(options, _):
    return Backend(options.store, options.group_rank, options.group_size, options.timeout, options.group_id,
                   list(options.global_ranks_in_group))


torch.distributed.Backend.register_backend("braid", _create, extended_api=True, devices=["cpu"])
