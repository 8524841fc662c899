# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's own tests of its collectives (torch.testing._internal.distributed.distributed_test, which the wheel has), run
with the backend "braid". Their decorators choose by the backend's name: BRAID_SUITE_AS names the one whose tests are taken,
"gloo", which is also of the CPU, or "mpi", which alone has those of all_to_all on the CPU.

    BRAID_SUITE_AS=gloo python -m unittest -v c10d_pytorch_suite"""
import os
import re
import unittest

os.environ.setdefault("WORLD_SIZE", "3")
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
# What decorators see while the module is imported.
os.environ["BACKEND"] = os.environ["BRAID_SUITE_AS"]

import torch  # noqa: E402
import torch.multiprocessing  # noqa: E402
from torch.testing._internal.distributed import distributed_test  # noqa: E402

import braid_c10d  # noqa: E402, F401

os.environ["BACKEND"] = distributed_test.BACKEND = "braid"

# Why tests are left out: a pattern of names, and the reason.
LEFT_OUT = {
    r"test_monitored_barrier.*|test_ddp_(model_diff|device_mesh|.*uneven_input_exception).*|test_.*_hang.*":
        "monitored_barrier, which PyTorch implements for Gloo's class alone",
    r"test_sparse_all_reduce.*|.*sparse_error.*": "sparse tensors, which braid refuses",
    r"test_barrier_timeout.*": "expects Gloo's words in the message of a time limit",
    r"test_accumulate_gradients_no_sync.*": "has a model for the names of PyTorch's own backends only",
    r"test_ddp_logging_data_cpu": "expects the backend's name in a record in which PyTorch writes 'custom'",
}
if os.environ["BRAID_SUITE_AS"] == "mpi":
    LEFT_OUT[r"test_(?!all_to_all).*"] = "in the run as gloo"


class BraidSuite(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._spawn_processes()

    def _spawn_processes(self):
        # Forked from this process, which has imported all of it and has no threads: a test takes a second, not ten.
        self._start_processes(torch.multiprocessing.get_context("fork").Process)


for name in dir(BraidSuite):
    for pattern, why in LEFT_OUT.items():
        if name.startswith("test_") and re.fullmatch(pattern, name):
            setattr(BraidSuite, name, unittest.skip(why)(getattr(BraidSuite, name)))
