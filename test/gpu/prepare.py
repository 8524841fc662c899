#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prepares the files that run.py needs on a machine with a GPU. Started by prepare.sh, which says more with --help."""
import argparse
import json
import lzma
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile

import numpy as np

import encoded_programs
import plan

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BRAID_BUILD_DIR", ROOT / "build"))
LIMIT_MB = 64
# Libraries that every machine with a compiler has, and whose own versions it must use.
SYSTEM_LIBRARIES = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so.*)$")
# Programs that were linked with these run with newer ones, which come with the system and its loader.
GLIBC = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread)\.so.*)$")
WRAPPER = """#!/bin/sh
# The libraries are for this program alone: others of this machine have their own.
here=$(cd "$(dirname "$0")/.." && pwd)
LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$here/lib/NAME" "$@"
"""
# Headers as the runtime's build finds them. Folders with machine-dependent headers come after the plain ones.
HEADERS = ("CLI", "dnnl*", "flatbuffers", "nlohmann", "oneapi", "openssl", "zip.h", "zipconf.h")
CMAKE_PACKAGES = ("CLI11", "nlohmann_json")


def fail(message):
    sys.exit(f"prepare: error: {message}")


def call(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        fail(f"'{' '.join(map(str, command))}' ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def braid(*args):
    return call(BUILD / "bin" / "braid", *args)


def write_inputs(directory, model):
    directory.mkdir(parents=True)
    random = np.random.default_rng(0)
    shape = (model["batch"], model["seq"])
    vocabulary = json.loads((ROOT / model["config"]).read_text())["vocab_size"]
    values = {"input_ids": random.integers(0, vocabulary, shape)}
    # The sentences of a batch have different lengths.
    lengths = random.integers(shape[1] // 2, shape[1] + 1, (shape[0], 1)) if shape[0] > 1 else [[shape[1]]]
    values["attention_mask"] = (np.arange(shape[1]) < lengths).astype(np.int64)
    if model["family"] == "bert":
        values["token_type_ids"] = np.zeros(shape, np.int64)
    for name, value in values.items():
        np.save(directory / f"{name}.npy", value)
    return sorted(values)


class Compiler:
    """Writes bundles for the architectures, as run.py reads them."""
    def __init__(self, architectures):
        self.target = f"cuda:{','.join(architectures)}"

    def __call__(self, module, path, *options):
        """`path` is without its suffix."""
        bundle = path.with_name(path.name + ".braid")
        braid("compile", module, *options, "--target", self.target, "-o", bundle)
        path.with_name(path.name + plan.BUNDLE).write_bytes(lzma.compress(bundle.read_bytes()))
        bundle.unlink()


def make_model(output, name, model, ranks, compile_bundle):
    """Writes one model's inputs, the CPU's results, and a bundle for each number of ranks."""
    print(f"prepare: {name}", flush=True)
    directory = output / name
    inputs = write_inputs(directory / "inputs", model)
    module = directory / "module.mlir"
    braid("import", ROOT / model["config"], "--batch", model["batch"], "--seq", model["seq"], *model["import"], "-o", module)
    given = [arg for value in inputs for arg in ("--input", f"{value}={directory / 'inputs' / value}.npy")]
    braid("run", module, "--ranks", 1, "--random-weights", plan.SEED, *given, "--output", directory / "expected")
    expected = sorted(path.name for path in (directory / "expected").iterdir())
    for count in ranks:
        for encoding in plan.encodings(name, count):
            mesh = ["--mesh", f"tp={count}", *plan.options(encoding)]
            variant = plan.variant(count, encoding)
            compile_bundle(module, directory / variant, *mesh)
            if encoding:
                braid("run", module, *mesh, "--random-weights", plan.SEED, *given, "--output", directory / f"expected-{variant}")
    module.unlink()
    return {"name": name, "ranks": ranks, "inputs": inputs, "expected": expected, "seed": plan.SEED}


def cached(name):
    """Returns a path that the runtime's build found."""
    found = re.search(rf"^{name}:\w+=(.+)$", (BUILD / "CMakeCache.txt").read_text(), re.M)
    if not found:
        fail(f"{BUILD}/CMakeCache.txt does not say where {name} is")
    return pathlib.Path(found[1])


def collect_libraries(target):
    """Makes a prefix with everything that the runtime's build looks for: headers, shared libraries with their
    dependencies, and flatc."""
    include, lib, programs = target / "include", target / "lib", target / "bin"
    for directory in (include, lib, programs):
        directory.mkdir(parents=True)
    for root in (pathlib.Path("/usr/include"), pathlib.Path("/usr/include") / f"{platform.machine()}-linux-gnu"):
        for pattern in HEADERS:
            for path in root.glob(pattern):
                if path.is_dir():
                    shutil.copytree(path, include / path.name, dirs_exist_ok=True)
                else:
                    shutil.copy(path, include / path.name)
    flatc = cached("FLATC")
    shutil.copy(flatc, programs / "flatc")
    for variable in ("DNNL_LIBRARY", "LIBZIP_LIBRARY", "OPENSSL_CRYPTO_LIBRARY"):
        library = cached(variable)
        real = soname(library)
        shutil.copy(library.resolve(), lib / real)
        if not (lib / library.name).exists():
            (lib / library.name).symlink_to(real)
        add_needed(library, lib)
    add_needed(flatc, lib)
    for package in CMAKE_PACKAGES:
        found = [path for root in ("/usr/share/cmake", "/usr/lib/cmake", f"/usr/lib/{platform.machine()}-linux-gnu/cmake")
                 for path in pathlib.Path(root).glob(package)]
        if not found:
            fail(f"the CMake package of {package} is not there")
        shutil.copytree(found[0], target / "share" / "cmake" / package)


def soname(library):
    found = re.search(r"SONAME\s+(\S+)", call("objdump", "-p", library))
    return found[1] if found else library.name


def collect_programs(target):
    """The programs that run.py starts, as built here, with the libraries that they load."""
    programs, lib = target / "bin", target / "lib"
    for directory in (programs, lib):
        directory.mkdir(parents=True)
    for name in plan.PROGRAMS:
        program = BUILD / "bin" / name
        shutil.copy(program, lib / name)
        add_needed(program, lib, GLIBC)
        (programs / name).write_text(WRAPPER.replace("NAME", name))
        (programs / name).chmod(0o755)


def add_needed(file, lib, system=SYSTEM_LIBRARIES):
    for name, path in re.findall(r"^\s*(\S+) => (/\S+)", call("ldd", file), re.M):
        if not system.match(name) and not (lib / name).exists():
            shutil.copy(pathlib.Path(path).resolve(), lib / name)


def archive(output, name, collect, preset=4):
    target = output / name
    collect(target)
    with tarfile.open(output / (name + ".tar.xz"), "w:xz", preset=preset) as opened:
        opened.add(target, name)
    shutil.rmtree(target)


def size_of(paths):
    return sum(path.stat().st_size for path in paths if path.is_file() and not path.is_symlink())


def some_of(option, text, known):
    chosen = text.split(",")
    for name in chosen:
        if name not in known:
            fail(f"{option} expects some of {','.join(known)}, got '{name}'")
    return chosen


def main():
    parser = argparse.ArgumentParser(prog="prepare.sh")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / plan.FOLDER)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--models", default=",".join(plan.MODELS))
    parser.add_argument("--ranks", default=",".join(map(str, plan.RANKS)))
    parser.add_argument("--architectures", default=",".join(plan.ARCHITECTURES))
    parser.add_argument("--programs", action="store_true")
    parser.add_argument("--no-libraries", action="store_true")
    args = parser.parse_args()
    names = some_of("--models", args.models, plan.MODELS)
    ranks = list(map(int, some_of("--ranks", args.ranks, list(map(str, plan.RANKS)))))
    architectures = some_of("--architectures", args.architectures, plan.ARCHITECTURES)
    if args.output.exists() and not (args.output / plan.CONTENTS).exists() and any(args.output.iterdir()):
        fail(f"{args.output} has other things in it")
    shutil.rmtree(args.output, ignore_errors=True)
    args.output.mkdir(parents=True)

    models = plan.SMALL_MODELS if args.small else plan.MODELS
    # Written first, so that an interrupted folder is recognized as ours. run.py reads it after it is complete.
    contents = {"format_version": plan.FORMAT_VERSION, "machine": platform.machine(), "small": args.small, "models": None}
    (args.output / plan.CONTENTS).write_text(json.dumps(contents))
    compile_bundle = Compiler(["sm_90a"] if args.small else architectures)
    contents["tiny"] = [make_model(args.output, name, model, [plan.TINY_RANKS], compile_bundle) for name, model in plan.TINY.items()
                        if plan.TINY_RANKS in ranks]
    contents["encoded"] = [encoded_programs.make(args.output, name, count, args.small, compile_bundle, braid)
                           for name, count in plan.ENCODED if count in ranks]
    contents["models"] = [make_model(args.output, name, models[name], ranks, compile_bundle) for name in names]
    if args.programs:
        print("prepare: programs", flush=True)
        contents["glibc"] = os.confstr("CS_GNU_LIBC_VERSION").split()[1]
        archive(args.output, plan.PROGRAMS_FOLDER, collect_programs)
    elif not args.no_libraries:
        print("prepare: libraries and headers of the runtime", flush=True)
        archive(args.output, plan.LIBRARIES, collect_libraries)
    (args.output / plan.CONTENTS).write_text(json.dumps(contents, indent=2) + "\n")

    made = size_of(args.output.rglob("*"))
    tree = size_of(ROOT / name for name in call("git", "-C", ROOT, "ls-files", "-z").split("\0") if name)
    print(f"prepare: {args.output} has {made / 1e6:.1f} MB; with the {tree / 1e6:.1f} MB of the tree "
          f"{(made + tree) / 1e6:.1f} of {LIMIT_MB} MB")
    if made + tree > LIMIT_MB * 1e6:
        fail(f"expects at most {LIMIT_MB} MB; --models, --ranks and --architectures make less")


if __name__ == "__main__":
    main()
