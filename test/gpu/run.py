#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the runtime and runs prepared bundles on a GPU. Started by run.sh, which says more with --help.

It uses Python's standard library only, since the machine may have nothing else.
"""
import argparse
import ctypes
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile

import plan
import results

ROOT = pathlib.Path(__file__).resolve().parents[2]
BAD_INPUT, CHECK_FAILED = 1, 2
CMAKE_NEEDED = (3, 25)
# The runtime itself ends a run without progress after a time limit. This limit is for failures of the runtime.
RUN_LIMIT_S, SANITIZER_LIMIT_S = 300, 150


class Error(Exception):
    pass


def last_lines(text, count=3):
    return " / ".join(line.strip() for line in text.strip().splitlines()[-count:]) or "no message"


# --- the machine

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


# --- the runtime

def tool_version(program, pattern):
    done = subprocess.run([program, "--version"], capture_output=True, text=True)
    found = re.search(pattern, done.stdout)
    if not found:
        raise Error(f"'{program} --version' does not say its version")
    return tuple(map(int, found.groups()))


def first_program(names, what):
    for name in names:
        path = shutil.which(name)
        if path:
            return path
    raise Error(f"expects {what}: none of {', '.join(names)} is there")


def call(command, what):
    print("$ " + " ".join(map(str, command)), flush=True)
    done = subprocess.run(list(map(str, command)), cwd=ROOT, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise Error(f"{what} ended with status {done.returncode}; see above")


def unpack(prepared, build):
    """Unpacks the prepared libraries and returns their folder, or None if the libraries of this machine are to be
    used."""
    archive = prepared / (plan.LIBRARIES + ".tar.xz")
    if not archive.exists():
        return None
    target = build / plan.LIBRARIES
    shutil.rmtree(target, ignore_errors=True)
    build.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as opened:
        opened.extractall(build)
    return target


def configure_command(build, libraries):
    """The command for the preset `runtime`, with the compiler and the libraries of this machine."""
    cmake = first_program(["cmake"], "CMake")
    version = tool_version(cmake, r"version (\d+)\.(\d+)")
    if version < CMAKE_NEEDED:
        raise Error("expects CMake %d.%d or newer, got %d.%d" % (CMAKE_NEEDED + version))
    cxx = os.environ.get("CXX") or first_program(["g++", "clang++"], "a C++ compiler")
    cc = os.environ.get("CC") or first_program(["gcc", "clang"], "a C compiler")
    command = [cmake, "--preset", "runtime", "-S", ROOT, "-B", build, "-G", "Ninja" if shutil.which("ninja") else "Unix Makefiles",
               f"-DCMAKE_C_COMPILER={cc}", f"-DCMAKE_CXX_COMPILER={cxx}", "-DCMAKE_C_COMPILER_LAUNCHER=",
               "-DCMAKE_CXX_COMPILER_LAUNCHER=", "-DBRAID_BUILD_TESTS=OFF", "-DBRAID_WERROR=OFF"]
    if libraries:
        # The packed libraries come before those of this machine. -rpath-link resolves their own dependencies at link
        # time. At run time these are found through an RPATH instead of a RUNPATH, which covers indirect dependencies
        # too, and instead of LD_LIBRARY_PATH, which other programs of this machine would also use.
        linking = f"-Wl,-rpath-link,{libraries}/lib -Wl,--disable-new-dtags"
        command += [f"-DCMAKE_PREFIX_PATH={libraries}", f"-DOPENSSL_ROOT_DIR={libraries}", f"-DFLATC={libraries}/bin/flatc",
                    f"-DCMAKE_CXX_FLAGS=-isystem {libraries}/include", f"-DCMAKE_EXE_LINKER_FLAGS={linking}",
                    f"-DCMAKE_SHARED_LINKER_FLAGS={linking}"]
    return command


def build_runtime(build, libraries):
    call(configure_command(build, libraries), "configuring the runtime")
    call(["cmake", "--build", build, "--parallel", os.cpu_count() or 1, "--target", "braid-run", "BraidCudaBenchmark"],
         "building the runtime")


# --- measurements

class Runner:
    def __init__(self, args, models, gpus, env):
        self.args, self.models, self.gpus, self.env = args, models, gpus, env
        self.extra = ["--cuda-library", args.cuda_library] if args.cuda_library else []

    def command(self, model, ranks, encoding, *options):
        folder = self.args.prepared / model["name"]
        variant = plan.variant(ranks, encoding)
        expected = folder / (f"expected-{variant}" if encoding else "expected")
        command = [self.args.build / "bin" / "braid-run", folder / f"{variant}.braid", "--target", "cuda",
                   "--random-weights", model["seed"], *self.extra]
        for name in model["inputs"]:
            command += ["--input", f"{name}={folder / 'inputs' / name}.npy"]
        for name in model["expected"]:
            command += ["--check", expected / name]
        return [*map(str, command), *map(str, options)]

    def call(self, command, limit):
        try:
            return subprocess.run(command, capture_output=True, text=True, errors="replace", env=self.env, timeout=limit,
                                  stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return None

    def run(self, run):
        """Returns the fields for the result of `run`."""
        model = self.models[run["model"]]
        if run["transport"] == "nccl" and len(self.gpus) < run["ranks"]:
            return {"state": results.UNMEASURED, "reason": f"expects {run['ranks']} GPUs, this machine has {len(self.gpus)}"}
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report.json"
            options = ["--transport", run["transport"], "--warmup", 3, "--repeat", self.args.repeat, "--report", report]
            command = self.command(model, run["ranks"], run["encoding"], *options, *(["--cuda-graph"] if run["graph"] else []))
            done = self.call(command, RUN_LIMIT_S)
            if done is None:
                return {"state": results.FAILED, "reason": f"still running after {RUN_LIMIT_S} s"}
            if done.returncode not in (0, CHECK_FAILED) or not report.exists():
                return {"state": results.FAILED, "reason": f"ended with status {done.returncode}: {last_lines(done.stderr)}"}
            measured = json.loads(report.read_text())
        worst = max(measured["checks"], key=lambda c: c["relative_l2"] / c["allowed_relative_l2"])
        return {"state": results.MEASURED, "passed": all(c["passed"] for c in measured["checks"]), "runs": self.args.repeat,
                **{name: worst[name] for name in ("relative_l2", "allowed_relative_l2")},
                **{name: measured[name] for name in ("median_run_s", "min_run_s", "bytes_sent_per_rank", "exposed_comm_s",
                                                     "peak_memory_bytes")}}

    def kernels(self, name):
        """Measures the kernels of a model on one rank, and the copy that they are compared with."""
        model = self.models[name]
        command = [self.args.build / "bin" / "BraidCudaBenchmark", self.args.prepared / name / f"tp{model['ranks'][0]}.braid",
                   "--bytes", self.args.kernel_bytes, *self.extra]
        done = self.call(list(map(str, command)), RUN_LIMIT_S)
        if done is None or done.returncode:
            reason = f"still running after {RUN_LIMIT_S} s" if done is None else last_lines(done.stderr)
            return {"state": results.FAILED, "reason": reason}, None
        measured = json.loads(done.stdout)
        return {"state": results.MEASURED, "kernels": measured["kernels"]}, {"state": results.MEASURED, **measured["copy"]}

    def sanitizer(self, entry):
        name, ranks, encoding = entry["model"], entry["ranks"], entry["encoding"]
        program = shutil.which("compute-sanitizer")
        if not program:
            return {"state": results.UNMEASURED, "reason": "compute-sanitizer is not there"}
        if name not in self.models or ranks not in self.models[name]["ranks"]:
            return {"state": results.UNMEASURED, "reason": f"{name} on {ranks} ranks was not prepared"}
        command = [program, "--tool", entry["tool"], "--error-exitcode", "9",
                   *self.command(self.models[name], ranks, encoding, "--time-limit", 0)]
        done = self.call(command, SANITIZER_LIMIT_S)
        if done is None:
            return {"state": results.UNMEASURED, "reason": f"still running after {SANITIZER_LIMIT_S} s"}
        said = done.stdout + done.stderr
        # compute-sanitizer's message when the machine does not give it access to the GPU, which is no fault of the
        # program.
        if "Device not supported" in said:
            return {"state": results.UNMEASURED, "reason": "compute-sanitizer does not run here: Device not supported"}
        found = re.search(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)", said)
        if not found:
            return {"state": results.FAILED, "reason": f"ended with status {done.returncode}: {last_lines(said)}"}
        if done.returncode not in (0, 9):
            return {"state": results.FAILED, "reason": f"the run ended with status {done.returncode}: {last_lines(done.stderr)}"}
        return {"state": results.MEASURED, "errors": int(found[1])}


def read_contents(prepared):
    path = prepared / plan.CONTENTS
    if not path.exists():
        raise Error(f"{path} is not there: test/gpu/prepare.sh makes it on a machine with LLVM")
    contents = json.loads(path.read_text())
    if contents.get("format_version") != plan.FORMAT_VERSION or contents.get("models") is None:
        raise Error(f"{prepared} was not made by this version of test/gpu/prepare.sh, or not to its end")
    if contents["machine"] != platform.machine():
        raise Error(f"{prepared} was made for {contents['machine']}, this machine is {platform.machine()}")
    return contents


def measure(args):
    contents = read_contents(args.prepared)
    # Checked before the build, which takes minutes.
    gpus = find_gpus(args.cuda_library)
    env = dict(os.environ)
    if not args.cuda_library:
        blas, nccl = library_folders(["libcublasLt.so.13", "libcublasLt.so.12"]), library_folders(["libnccl.so.2"])
        if blas is None:
            raise Error("expects cuBLASLt: no libcublasLt.so.13 or libcublasLt.so.12 where the loader, CUDA_HOME, /usr/local/cuda "
                        "and this Python's packages have their libraries")
        env["LD_LIBRARY_PATH"] = os.pathsep.join([*blas, *(nccl or []), *filter(None, [env.get("LD_LIBRARY_PATH")])])
    if args.build is None:
        args.build = ROOT / "build-gpu-runtime"
        build_runtime(args.build, unpack(args.prepared, args.build))

    models = {model["name"]: model for model in contents["models"]}
    ranks = sorted({count for model in contents["models"] for count in model["ranks"]})
    data = results.unmeasured("was not reached", tuple(models), ranks)
    data.update(date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), small=contents["small"],
                gpus=gpus, driver=driver_version(), host=host())
    runner = Runner(args, models, gpus, env)

    def record(entry, fields, what):
        for name in ("state", "reason"):
            entry.pop(name, None)
        entry.update(fields)
        said = entry["state"] + (f": {entry['reason']}" if "reason" in entry else "")
        if entry["state"] == results.MEASURED and "relative_l2" in entry:
            said = (f"relative L2 {entry['relative_l2']:.2e}, allowed {entry['allowed_relative_l2']:.0e}"
                    f"{'' if entry['passed'] else ': FAILED'}; median {entry['median_run_s'] * 1e3:.3f} ms")
        elif entry["state"] == results.MEASURED and "errors" in entry:
            said = f"{entry['errors']} errors"
        print(f"{what}: {said}", flush=True)
        # Written after each step, so that known results are kept whatever happens next.
        args.output.write_text(results.render(data))

    for run in data["runs"]:
        record(run, runner.run(run), results.describe(run))
    for entry in data["kernels"]:
        fields, copy = runner.kernels(entry["model"])
        record(entry, fields, f"kernels of {entry['model']}")
        if copy and data["copy"]["state"] != results.MEASURED:
            record(data["copy"], copy, "copy within the GPU's memory")
    for entry in data["sanitizers"]:
        record(entry, runner.sanitizer(entry), results.describe_sanitizer(entry))
    print(f"run: wrote {args.output}")
    if not results.succeeded(data):
        print("run: error: something failed; see above", file=sys.stderr)
        return CHECK_FAILED
    return 0


def positive(text):
    if not re.fullmatch(r"[1-9][0-9]*", text):
        raise argparse.ArgumentTypeError(f"expects a positive number, got '{text}'")
    return int(text)


def main():
    parser = argparse.ArgumentParser(prog="run.sh")
    parser.add_argument("--prepared", type=pathlib.Path, default=ROOT / plan.FOLDER)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--repeat", type=positive, default=20)
    parser.add_argument("--kernel-bytes", type=positive, default=512 << 20, help=argparse.SUPPRESS)
    parser.add_argument("--cuda-library", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.output = args.output or args.prepared / "RESULTS.md"
    try:
        return measure(args)
    except (Error, OSError) as error:
        print(f"run: error: {error}", file=sys.stderr)
        return BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
