# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the programs of encoded collectives, with what the interpreter gives for them. Their cases are of the form that
test/Integration has."""
import pathlib
import shutil
import sys
import zipfile

import numpy as np

import encoded_checks
import plan

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Integration"))

import encoded_cases  # noqa: E402


def cases_of(program, count, small):
    """The cases of a program for this many ranks, as test/Integration/encoded_cases.py describes them."""
    if program == "encoded-covering":
        cases = [case for case in encoded_cases.CASES if case["ranks"] == count]
        return cases[::10] if small else cases
    sums = program == "encoded-sums"
    encodings = encoded_cases.AXES["encoding"] if sums else plan.CODECS
    # The codecs that are timed have one type before and behind the payload, which an all_reduce's have not.
    kinds = ["all_reduce"] if sums else ["reduce_scatter", "all_gather"]
    # All lengths of rows in turn, each with many encodings. One row of 4099 numbers has tails of everything.
    sizes = [(7, 200), (8, 128), (37, 9), (1, 4099), (64, 256)]
    around = "kernels" if sums else "nothing"
    cases = [{"encoding": encoding, "kind": kind, "type": dtype, "size": sizes[(i + j) % len(sizes)], "ranks": count,
              "around": around} for i, encoding in enumerate(encodings) for j, dtype in enumerate(plan.ENCODED_TYPES) for kind in kinds]
    return cases[::7] if small else cases


def make(output, program, count, small, compile_bundle, braid):
    """Writes the program's bundle, the inputs that are not drawn from a seed, and the interpreter's results; returns what
    run.py reads of it."""
    name = f"{program}{count}"
    print(f"prepare: {name}", flush=True)
    directory = output / plan.ENCODED_FOLDER / name
    directory.mkdir(parents=True)
    cases = cases_of(program, count, small)
    text, inputs = encoded_cases.program(cases, count)
    module = directory / "module.mlir"
    module.write_text(text)
    given = sorted(name for name, value in inputs.items() if isinstance(value, np.ndarray))
    for value in given:
        np.save(directory / f"{value}.npy", inputs[value])
    compile_bundle(module, directory / encoded_checks.PROGRAM)
    results = directory / "results"
    braid("run", module, *encoded_checks.arguments(directory, given), "--target", "reference", "--output", results)
    with zipfile.ZipFile(directory / encoded_checks.EXPECTED, "w", zipfile.ZIP_LZMA) as archive:
        for number in range(len(cases)):
            archive.write(results / f"y{number}.npy", f"y{number}.npy")
    shutil.rmtree(results)
    module.unlink()
    return {"name": program, "ranks": count, "inputs": given, "cases": cases}
