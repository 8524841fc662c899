# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os

import lit.formats
from lit.llvm import llvm_config

config.name = "braid"
config.test_format = lit.formats.ShTest(not llvm_config.use_lit_shell)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "CMakeLists.txt", "unit", "lit.cfg.py", "lit.site.cfg.py"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.braid_obj_root, "test")
llvm_config.use_default_substitutions()
tools_dir = os.path.join(config.braid_obj_root, "bin")
llvm_config.with_environment("PATH", tools_dir, append_path=True)
llvm_config.with_environment("PATH", config.llvm_tools_dir, append_path=True)
config.substitutions.append(("%src_root", config.braid_src_root))
config.substitutions.append(("%python", os.environ.get("BRAID_VENV_PYTHON", "python3")))
