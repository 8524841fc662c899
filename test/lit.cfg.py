# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import glob
import os
import shutil

import lit.formats
from lit.llvm import llvm_config
from lit.llvm.subst import ToolSubst

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
# Test passes are not installed.
llvm_config.add_tool_substitutions([ToolSubst("braid-opt", command=os.path.join(tools_dir, "braid-test-opt"))])
config.substitutions.append(("%installed_opt", os.path.join(tools_dir, "braid-opt")))
config.substitutions.append(("%src_root", config.braid_src_root))
config.substitutions.append(("%obj_root", config.braid_obj_root))
config.substitutions.append(("%python", os.environ.get("BRAID_VENV_PYTHON", "python3")))
# The compilers for --target cuda, where scripts/setup.sh and a toolkit install them.
nvrtc = glob.glob(os.path.join(config.braid_obj_root, "venv/lib/python3*/site-packages/nvidia/cu13/lib/libnvrtc.so.13"))
if nvrtc or shutil.which("nvcc") or os.path.exists("/usr/local/cuda/bin/nvcc"):
    config.available_features.add("cuda-compiler")
