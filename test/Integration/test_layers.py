# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dependencies between libraries: dialects and interpreter depend on the libraries Base and Program, never on archives,
JSON, digests or executors."""
import functools
import json
import re
import subprocess

import pytest

from braidtest import BUILD, ROOT

# Folders of runtime/include/braid that a library's sources may include, directly or indirectly.
BASE, PROGRAM = {"Base"}, {"Base", "Program"}
FOLDERS = {"BraidBase": BASE, "BraidProgram": PROGRAM, "BraidLaunch": BASE | {"Runtime"}, "BraidCost": BASE | {"Collective", "Cost"},
           "BraidCommDialect": BASE, "BraidNNDialect": BASE, "BraidRTDialect": BASE, "BraidInterpreterCore": PROGRAM, "BraidInterpreter": PROGRAM}
# The Braid libraries that define all symbols that a library needs.
NEEDS = {"BraidBase": [], "BraidProgram": ["BraidBase"], "BraidLaunch": ["BraidBase"], "BraidCost": ["BraidBase", "BraidMachine", "BraidCommDialect", "BraidNNDialect", "BraidRTDialect"],
         "BraidCommDialect": ["BraidBase"],
         "BraidNNDialect": ["BraidBase", "BraidCommDialect"],
         "BraidRTDialect": ["BraidBase", "BraidCommDialect", "BraidNNDialect"],
         "BraidInterpreterCore": ["BraidBase", "BraidProgram"],
         "BraidInterpreter": ["BraidBase", "BraidProgram", "BraidCommDialect", "BraidNNDialect", "BraidRTDialect",
                              "BraidInterpreterCore"]}
FOREIGN_HEADER = re.compile(r"/(zip|zipconf)\.h$|/nlohmann/|/openssl/|/oneapi/")
FOREIGN_SYMBOL = re.compile(r"^(zip_|EVP_|SHA\d|dnnl_)")


@functools.cache
def headers():
    """(library, source) -> the files that the source included when it was compiled, as recorded by ninja."""
    sources = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        if made := re.search(r" -o (\S+/CMakeFiles/(?:obj\.)?(\w+)\.dir/\S+)", entry["command"]):
            sources[made.group(1)] = (made.group(2), entry["file"])
    found, current = {}, None
    text = subprocess.run(["ninja", "-C", BUILD, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        if line.startswith("    "):
            if current:
                found[current].append((BUILD / line.strip()).resolve())
        elif ": #deps" in line:
            current = sources.get(line.split(": #deps")[0])
            if current:
                found[current] = []
    return found


def wrong_headers(library, folders):
    """Headers outside these folders that the library's sources include."""
    own = [(source, paths) for (name, source), paths in headers().items() if name == library]
    assert own, f"no source of {library} was compiled"
    wrong = set()
    for source, paths in own:
        for path in paths:
            inside = re.search(r"/runtime/include/braid/(\w+)/", str(path))
            private = path.is_relative_to(ROOT / "runtime/lib") and not source.startswith(str(path.parent) + "/")
            if (inside and inside.group(1) not in folders) or private or FOREIGN_HEADER.search(str(path)):
                wrong.add(str(path))
    return wrong


@functools.cache
def symbols(library):
    """(defined, needed) symbols."""
    archive = BUILD / f"lib/lib{library}.a"
    lines = subprocess.run(["nm", "-P", archive], capture_output=True, text=True, check=True).stdout.splitlines()
    kinds = [fields[:2] for fields in map(str.split, lines) if len(fields) >= 2]
    return ({name for name, kind in kinds if kind not in "Uwv"}, {name for name, kind in kinds if kind == "U"})


def wrong_symbols(library, others):
    """Braid symbols that the library needs and these others do not define, and symbols of foreign libraries that it
    needs."""
    defined, needed = symbols(library)
    for other in others:
        defined = defined | symbols(other)[0]
    return {name for name in needed - defined if "5braid" in name or FOREIGN_SYMBOL.match(name)}


@pytest.mark.parametrize("library", FOLDERS)
def test_library(library):
    assert not wrong_headers(library, FOLDERS[library])
    assert not wrong_symbols(library, NEEDS[library])


def test_others_would_be_found():
    """Applies the checks to a library that reads bundles, and expects that they fail."""
    wrong = wrong_headers("BraidRuntimeData", BASE)
    for header in ("/zip.h", "/nlohmann/json.hpp", "/braid/Runtime/Bundle.h", "/braid/Program/Program.h"):
        assert any(path.endswith(header) for path in wrong), header
    wrong = wrong_symbols("BraidRuntimeData", ["BraidBase"])
    assert "zip_open_from_source" in wrong and any("verifyProgram" in name for name in wrong)
