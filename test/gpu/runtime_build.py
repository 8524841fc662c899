# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the runtime on the machine with the GPU. Uses Python's standard library only."""
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

import plan
from machine import Error

ROOT = pathlib.Path(__file__).resolve().parents[2]
CMAKE_NEEDED = (3, 25)


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


def unpack(prepared, name, build):
    """Unpacks an archive and returns its folder, or None where it was not prepared."""
    archive = prepared / (name + ".tar.xz")
    if not archive.exists():
        return None
    target = build / name
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


def check_glibc(needed):
    """Raises Error where this machine's is older than that which the prepared programs were linked with."""
    def numbers(version):
        return tuple(map(int, version.split(".")[:2]))

    got = os.confstr("CS_GNU_LIBC_VERSION").split()[1]
    if numbers(got) < numbers(needed):
        raise Error(f"expects glibc {needed} or newer for the prepared programs, got {got}: without --programs, test/gpu/prepare.sh "
                    "prepares for a build on this machine")


def get_runtime(prepared, contents, build):
    """Returns a folder with a bin/ that has the programs: those that were prepared, else those that it builds, with the prepared
    libraries or, where there are none, with this machine's."""
    if "glibc" in contents:
        check_glibc(contents["glibc"])
        return unpack(prepared, plan.PROGRAMS_FOLDER, build)
    build_runtime(build, unpack(prepared, plan.LIBRARIES, build))
    return build


def build_runtime(build, libraries):
    call(configure_command(build, libraries), "configuring the runtime")
    call(["cmake", "--build", build, "--parallel", os.cpu_count() or 1, "--target", *plan.PROGRAMS],
         "building the runtime")
