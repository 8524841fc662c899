# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the results of programs of encoded collectives (encoded_programs.py) with the interpreter's. Uses Python's standard
library only, as run.py does."""
import re
import zipfile

import plan

PROGRAM, EXPECTED = "program", "expected.zip"


def describe(case):
    rows, columns = case["size"]
    around = " between kernels" if case["around"] == "kernels" else ""
    return f"{case['kind']} of {case['encoding']}, {rows}x{columns}x{case['type']}{around}"


def arguments(directory, inputs):
    given = [word for name in inputs for word in ("--input", f"{name}={directory / name}.npy")]
    return ["--random-inputs", plan.ENCODED_SEED, *given]


def elements_of(npy):
    """The elements of a file's bytes, each as bytes."""
    start = 10 + int.from_bytes(npy[8:10], "little")
    size = int(re.search(rb"'descr': '[^']*?(\d+)'", npy[:start])[1])
    return [npy[at:at + size] for at in range(start, len(npy), size)]


def compare(directory, cases, output):
    """The results that differ from the interpreter's: of which case, and how many of their elements."""
    differences = []
    with zipfile.ZipFile(directory / EXPECTED) as archive:
        for number, case in enumerate(cases):
            expected = archive.read(f"y{number}.npy")
            path = output / f"y{number}.npy"
            got = path.read_bytes() if path.exists() else b""
            if got != expected:
                wanted, given = elements_of(expected), elements_of(got) if got else []
                unequal = sum(a != b for a, b in zip(wanted, given)) if len(given) == len(wanted) else len(wanted)
                differences.append({"case": describe(case), "elements": unequal, "of": len(wanted)})
    return differences
