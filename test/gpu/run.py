#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the runtime and runs prepared bundles on a GPU. Started by run.sh, which says more with --help.

It uses Python's standard library only, since the machine may have nothing else.
"""
import argparse
import datetime
import json
import lzma
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time

import encoded_checks
import machine
import plan
import results
import runtime_build
from machine import Error

ROOT = pathlib.Path(__file__).resolve().parents[2]
BAD_INPUT, CHECK_FAILED = 1, 2
# The runtime itself ends a run without progress after a time limit. This limit is for failures of the runtime.
RUN_LIMIT_S, SANITIZER_LIMIT_S = 300, 90


def last_lines(text, count=3):
    return " / ".join(line.strip() for line in text.strip().splitlines()[-count:]) or "no message"


class NotMeasured(Exception):
    """Why a step ended without a measurement."""
    def __init__(self, state, reason):
        super().__init__(reason)
        self.fields = {"state": state, "reason": reason}


class Runner:
    def __init__(self, args, contents, gpus, env, scratch):
        self.args, self.gpus, self.env, self.scratch = args, gpus, env, scratch
        self.models = {model["name"]: model for model in [*contents["models"], *contents["tiny"]]}
        self.encoded = {(program["name"], program["ranks"]): program for program in contents["encoded"]}
        self.extra = ["--cuda-library", args.cuda_library] if args.cuda_library else []
        self.small = contents["small"]
        self.pytorch_times, self.pytorch_reason = None, None
        self.end = time.monotonic() + args.time_limit if args.time_limit else None

    def seconds_left(self):
        return float("inf") if self.end is None else self.end - time.monotonic()

    def program(self, name, *options):
        return [*map(str, [self.args.build / "bin" / name, *options]), *self.extra]

    def bundle(self, path):
        """The unpacked bundle of a path without suffix."""
        unpacked = self.scratch / ("-".join(path.relative_to(self.args.prepared).parts) + ".braid")
        if not unpacked.exists():
            packed = path.with_name(path.name + plan.BUNDLE)
            try:
                unpacked.write_bytes(lzma.decompress(packed.read_bytes()))
            except (OSError, lzma.LZMAError) as error:
                raise NotMeasured(results.FAILED, f"{packed}: {error}") from None
        return unpacked

    def model_command(self, model, ranks, encoding, *options):
        folder = self.args.prepared / model["name"]
        variant = plan.variant(ranks, encoding)
        expected = folder / (f"expected-{variant}" if encoding else "expected")
        command = [self.bundle(folder / variant), "--target", "cuda", "--random-weights", model["seed"]]
        for name in model["inputs"]:
            command += ["--input", f"{name}={folder / 'inputs' / name}.npy"]
        for name in model["expected"]:
            command += ["--check", expected / name]
        return self.program("braid-run", *command, *options)

    def encoded_folder(self, program):
        return self.args.prepared / plan.ENCODED_FOLDER / f"{program['name']}{program['ranks']}"

    def encoded_command(self, program, *options):
        folder = self.encoded_folder(program)
        return self.program("braid-run", self.bundle(folder / encoded_checks.PROGRAM), "--target", "cuda",
                            *encoded_checks.arguments(folder, program["inputs"]), *options)

    def call(self, command, limit, late=results.FAILED, env=None):
        """`late`: the state of a step that takes longer than `limit`."""
        left = self.seconds_left()
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=env or self.env,
                                  timeout=min(limit, left), stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            if left < limit:
                raise NotMeasured(results.UNMEASURED, "--time-limit ended it") from None
            raise NotMeasured(late, f"still running after {limit} s") from None
        if "the bundle has no kernels for" in done.stderr:
            raise NotMeasured(results.UNMEASURED, last_lines(done.stderr, 1))
        return done

    def run(self, entry):
        """Returns the fields for the result of a run of a model."""
        model = self.models[entry["model"]]
        if entry["transport"] == "nccl" and len(self.gpus) < entry["ranks"]:
            raise NotMeasured(results.UNMEASURED, f"expects {entry['ranks']} GPUs, this machine has {len(self.gpus)}")
        report = self.scratch / "report.json"
        report.unlink(missing_ok=True)
        options = ["--transport", entry["transport"], "--warmup", 3, "--repeat", self.args.repeat, "--report", report,
                   *(["--cuda-graph"] if entry["graph"] else [])]
        done = self.call(self.model_command(model, entry["ranks"], entry["encoding"], *options), RUN_LIMIT_S)
        if done.returncode not in (0, CHECK_FAILED) or not report.exists():
            raise NotMeasured(results.FAILED, f"ended with status {done.returncode}: {last_lines(done.stderr)}")
        measured = json.loads(report.read_text())
        worst = max(measured["checks"], key=lambda c: c["relative_l2"] / c["allowed_relative_l2"])
        return {"passed": all(c["passed"] for c in measured["checks"]), "runs": self.args.repeat,
                **{name: worst[name] for name in ("relative_l2", "allowed_relative_l2")},
                **{name: measured[name] for name in ("median_run_s", "min_run_s", "bytes_sent_per_rank", "exposed_comm_s",
                                                     "peak_memory_bytes")}}

    def run_encoded(self, entry):
        program = self.encoded[entry["model"], entry["ranks"]]
        output = self.scratch / "results"
        shutil.rmtree(output, ignore_errors=True)
        options = ["--transport", "threads", *plan.WAYS[entry["way"]], "--output", output]
        done = self.call(self.encoded_command(program, *options), RUN_LIMIT_S)
        if done.returncode:
            raise NotMeasured(results.FAILED, f"ended with status {done.returncode}: {last_lines(done.stderr)}")
        differences = encoded_checks.compare(self.encoded_folder(program), program["cases"], output)
        return {"cases": len(program["cases"]), "differing": len(differences), "differences": differences}

    def benchmark(self, bundle, *options):
        done = self.call(self.program("BraidCudaBenchmark", bundle, *options), RUN_LIMIT_S)
        if done.returncode:
            raise NotMeasured(results.FAILED, f"ended with status {done.returncode}: {last_lines(done.stderr)}")
        return json.loads(done.stdout)

    def kernels(self, entry):
        """Measures the kernels of a model on one rank, and the copy that they are compared with."""
        model = self.models[entry["model"]]
        bundle = self.bundle(self.args.prepared / model["name"] / plan.variant(model["ranks"][0], None))
        measured = self.benchmark(bundle, "--bytes", self.args.kernel_bytes)
        return {"kernels": measured["kernels"], "copy": measured["copy"]}

    def codecs(self, entry):
        if plan.CODECS_PROGRAM not in self.encoded:
            raise NotMeasured(results.UNMEASURED, "%s on %d ranks was not prepared" % plan.CODECS_PROGRAM)
        program = self.encoded[plan.CODECS_PROGRAM]
        timed = dict.fromkeys((case["encoding"], case["type"]) for case in program["cases"])
        codecs = [word for encoding, dtype in timed for word in ("--codec", f"{encoding}={dtype}")]
        bundle = self.bundle(self.encoded_folder(program) / encoded_checks.PROGRAM)
        measured = self.benchmark(bundle, "--bytes", min(entry["bytes"], self.args.kernel_bytes), *codecs)
        return {"codecs": measured["codecs"], "copy": measured["copy"]}

    def sanitizer(self, entry):
        name, ranks, encoding = entry["model"], entry["ranks"], entry["encoding"]
        program = shutil.which("compute-sanitizer")
        if not program:
            raise NotMeasured(results.UNMEASURED, "compute-sanitizer is not there")
        if (name, ranks) in self.encoded:
            command = self.encoded_command(self.encoded[name, ranks], "--time-limit", 0)
        elif name in self.models and ranks in self.models[name]["ranks"]:
            command = self.model_command(self.models[name], ranks, encoding, "--time-limit", 0)
        else:
            raise NotMeasured(results.UNMEASURED, f"{name} on {ranks} ranks was not prepared")
        # Calls of the driver that fail are no errors here: the runtime asks for a function's parameters until the driver says that
        # there are no more, and a failure that matters ends the run anyway.
        command = [program, "--tool", entry["tool"], "--report-api-errors", "no", "--error-exitcode", "9", *command]
        done = self.call(command, SANITIZER_LIMIT_S, late=results.UNMEASURED)
        said = done.stdout + done.stderr
        # compute-sanitizer's message when the machine does not give it access to the GPU, which is no fault of the
        # program.
        if "Device not supported" in said:
            raise NotMeasured(results.UNMEASURED, "compute-sanitizer does not run here: Device not supported")
        found = re.search(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)", said)
        if not found:
            raise NotMeasured(results.FAILED, f"ended with status {done.returncode}: {last_lines(said)}")
        if done.returncode not in (0, 9):
            raise NotMeasured(results.FAILED, f"the run ended with status {done.returncode}: {last_lines(done.stderr)}")
        return {"errors": int(found[1])}


    def pytorch(self, entry):
        """All models are measured at the first one, since PyTorch takes long to load."""
        if self.pytorch_times is None:
            self.pytorch_times = {}
            try:
                self.pytorch_times = self.run_pytorch()
            except NotMeasured as why:
                self.pytorch_reason = why.fields["reason"]
        measured = self.pytorch_times.get((entry["model"], entry["graph"]), {"reason": self.pytorch_reason})
        if "reason" in measured:
            raise NotMeasured(results.UNMEASURED, measured["reason"])
        return measured

    def run_pytorch(self):
        models = plan.SMALL_MODELS if self.small else plan.MODELS
        specs = [{"name": name, "config": str(ROOT / models[name]["config"]), "import": models[name]["import"],
                  "inputs": str(self.args.prepared / name / "inputs")} for name in self.models if name in models]
        # PyTorch has CUDA libraries of its own.
        command = [sys.executable, ROOT / "test" / "gpu" / "pytorch.py", json.dumps(specs), "--repeat", self.args.repeat]
        done = self.call(list(map(str, command)), RUN_LIMIT_S, env=os.environ)
        if done.returncode:
            raise NotMeasured(results.UNMEASURED, last_lines(done.stderr, 1))
        said = json.loads(done.stdout)
        versions = {name: said[name] for name in ("torch", "transformers")}
        return {(one["model"], one["graph"]): {**one, **versions} for one in said["models"]}


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


def find_libraries(args):
    """The environment in which the runtime finds cuBLASLt and NCCL."""
    env = dict(os.environ)
    if not args.cuda_library:
        blas, nccl = machine.library_folders(["libcublasLt.so.13", "libcublasLt.so.12"]), machine.library_folders(["libnccl.so.2"])
        if blas is None:
            raise Error("expects cuBLASLt: no libcublasLt.so.13 or libcublasLt.so.12 where the loader, CUDA_HOME, /usr/local/cuda "
                        "and this Python's packages have their libraries")
        env["LD_LIBRARY_PATH"] = os.pathsep.join([*blas, *(nccl or []), *filter(None, [env.get("LD_LIBRARY_PATH")])])
    return env


def said_of(entry):
    if entry["state"] != results.MEASURED:
        return f"{entry['state']}: {entry['reason']}"
    if "relative_l2" in entry:
        return (f"relative L2 {entry['relative_l2']:.2e}, allowed {entry['allowed_relative_l2']:.0e}"
                f"{'' if entry['passed'] else ': FAILED'}; median {entry['median_run_s'] * 1e3:.3f} ms")
    if "median_s" in entry:
        return f"median {entry['median_s'] * 1e3:.3f} ms"
    if "differing" in entry:
        return "; ".join([f"{entry['differing']} of {entry['cases']} results differ{': FAILED' if entry['differing'] else ''}",
                          *(f"{one['case']} in {one['elements']} of {one['of']}" for one in entry["differences"])])
    return f"{entry['errors']} errors" if "errors" in entry else entry["state"]


def kept_results(path, data):
    """What an earlier run on such a machine measured, of the same things."""
    try:
        kept = results.parse(path.read_text())
    except results.Malformed as error:
        raise Error(f"--add: {path}: {error}") from None
    for name in ("small", "gpus", "driver"):
        if kept[name] != data[name]:
            raise Error(f"--add: {path} has '{name}' {kept[name]!r}, here it is {data[name]!r}")
    if [results.describe(run) for run in kept["runs"]] != [results.describe(run) for run in data["runs"]]:
        raise Error(f"--add: {path} has other runs than {plan.FOLDER}")
    return kept


def measure(args):
    contents = read_contents(args.prepared)
    # Checked before the build, which takes minutes.
    gpus = machine.find_gpus(args.cuda_library)
    env = find_libraries(args)
    if args.build is None:
        args.build = runtime_build.get_runtime(args.prepared, contents, ROOT / "build-gpu-runtime")

    ranks = sorted({count for model in contents["models"] for count in model["ranks"]})
    data = results.unmeasured("was not reached", tuple(model["name"] for model in contents["models"]), ranks)
    data.update(date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), small=contents["small"],
                gpus=gpus, driver=machine.driver_version(), host=machine.host())
    if args.add:
        kept = kept_results(args.output, data)
        data.update({part: kept[part] for part in plan.PARTS if part not in args.only})
        if "kernels" not in args.only:
            data["copy"] = kept["copy"]

    def record(entry, fields):
        for name in ("state", "reason"):
            entry.pop(name, None)
        entry.update({"state": results.MEASURED, **fields})

    with tempfile.TemporaryDirectory() as scratch:
        runner = Runner(args, contents, gpus, env, pathlib.Path(scratch))
        steps = {"runs": (runner.run, results.describe), "encoded": (runner.run_encoded, results.describe_encoded),
                 "kernels": (runner.kernels, results.describe_kernels), "codecs": (runner.codecs, results.describe_codecs),
                 "sanitizers": (runner.sanitizer, results.describe_sanitizer), "pytorch": (runner.pytorch, results.describe_pytorch)}
        for part in plan.PARTS:
            step, describe = steps[part]
            for entry in data[part]:
                if part not in args.only:
                    if not args.add:
                        record(entry, {"state": results.UNMEASURED, "reason": "--only left it out"})
                    continue
                try:
                    if runner.seconds_left() <= 0:
                        raise NotMeasured(results.UNMEASURED, "--time-limit was over")
                    fields = step(entry)
                except NotMeasured as why:
                    fields = why.fields
                # The copy is the same beside the kernels of all models.
                if part == "kernels" and "copy" in fields:
                    record(data["copy"], fields.pop("copy"))
                record(entry, fields)
                print(f"{describe(entry)}: {said_of(entry)}", flush=True)
                # Written after each step, so that known results are kept whatever happens next.
                args.output.write_text(results.render(data))
    args.output.write_text(results.render(data))
    print(f"run: wrote {args.output}")
    if not results.succeeded(data):
        print("run: error: something failed; see above", file=sys.stderr)
        return CHECK_FAILED
    return 0


def positive(text):
    if not re.fullmatch(r"[1-9][0-9]*", text):
        raise argparse.ArgumentTypeError(f"expects a positive number, got '{text}'")
    return int(text)


def parts(text):
    chosen = text.split(",")
    for part in chosen:
        if part not in plan.PARTS:
            raise argparse.ArgumentTypeError(f"expects some of {','.join(plan.PARTS)}, got '{part}'")
    return chosen


def main():
    parser = argparse.ArgumentParser(prog="run.sh")
    parser.add_argument("--prepared", type=pathlib.Path, default=ROOT / plan.FOLDER)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--repeat", type=positive, default=20)
    parser.add_argument("--only", type=parts, default=plan.PARTS)
    parser.add_argument("--add", action="store_true")
    parser.add_argument("--time-limit", type=positive)
    parser.add_argument("--kernel-bytes", type=positive, default=512 << 20, help=argparse.SUPPRESS)
    parser.add_argument("--cuda-library", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.prepared = args.prepared.resolve()
    args.output = args.output or args.prepared / "RESULTS.md"
    try:
        return measure(args)
    except (Error, OSError) as error:
        print(f"run: error: {error}", file=sys.stderr)
        return BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
