# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the machine with the GPU is, and has. Uses Python's standard library only."""
import ctypes
import os
import pathlib
import platform
import re
import sys
import sysconfig


class Error(Exception):
    pass


def find_gpus(cuda_library):
    """The names of the GPUs, as reported by the driver."""
    name = cuda_library or "libcuda.so.1"
    try:
        driver = ctypes.CDLL(name)
    except OSError as error:
        raise Error(f"expects an NVIDIA GPU and its driver on this machine: {error}") from None
    status = driver.cuInit(0)
    if status:
        raise Error(f"expects an NVIDIA GPU and its driver on this machine: cuInit of {name} gave {status}")
    count, names = ctypes.c_int(), []
    if driver.cuDeviceGetCount(ctypes.byref(count)) or count.value == 0:
        raise Error("expects an NVIDIA GPU on this machine: the driver sees none")
    for ordinal in range(count.value):
        text = ctypes.create_string_buffer(256)
        driver.cuDeviceGetName(text, len(text) - 1, ordinal)
        names.append(text.value.decode())
    return names


def driver_version():
    try:
        management = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return "unknown: libnvidia-ml.so.1 is not there"
    text = ctypes.create_string_buffer(96)
    if management.nvmlInit_v2() or management.nvmlSystemGetDriverVersion(text, len(text)):
        return "unknown: NVML does not say"
    return text.value.decode()


def host():
    cpu = platform.machine()
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
        cpu = found[1] if found else cpu
    except OSError:
        pass
    return {"cpu": cpu, "cores": os.cpu_count()}


def library_folders(names):
    """The folders of a toolkit and of Python packages that contain the first of `names`; none if the loader finds
    it."""
    for name in names:
        try:
            ctypes.CDLL(name)
            return []
        except OSError:
            pass
    roots = [pathlib.Path(os.environ[variable]) for variable in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(variable)]
    roots.append(pathlib.Path("/usr/local/cuda"))
    folders = [root / part for root in roots for part in ("lib64", "targets/x86_64-linux/lib")]
    packages = {sysconfig.get_path("purelib"), *sys.path}
    for package in sorted(filter(None, packages)):
        folders += sorted(pathlib.Path(package).glob("nvidia/*/lib"))
    for name in names:
        for folder in folders:
            if (folder / name).exists():
                return [str(folder)]
    return None
