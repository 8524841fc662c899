# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of IR outside of Braid's own tree: lit needs only the tools on PATH."""
import os

import lit.formats

config.name = "write-your-own"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(os.environ["WORK"], "test")
config.environment["PATH"] = os.environ["PATH"]
