# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tools' help, versions and messages, as a newcomer sees them."""
import re
import subprocess

import pytest

import braidtest
from braidtest import BAD_INPUT, run


@pytest.mark.parametrize("args,words", [
    (["braid", "--help"], ["import", "compile", "run", "explain", "doctor"]),
    (["braid", "explain", "--help"], ["--procedure", "--rank", "--json"]),
    (["braid", "doctor", "--help"], ["--json", "missing"]),
    (["braid", "import", "--help"], ["--batch", "--seq", "--layers", "--dtype", "-o"]),
    (["braid", "compile", "--help"], ["--mesh", "--target", "--emit", "-o"]),
    (["braid", "run", "--help"], ["--ranks", "--target", "--weights", "--input", "--output", "--check", "--trace", "--report"]),
    (["braid-run", "--help"], ["--ranks", "--weights", "--input", "--output", "--check", "--trace", "--report", "--time-limit"]),
    (["braid-opt", "--help"], ["--canonicalize"]),
    (["braid-lsp-server", "--help"], ["LSP"]),
    (["braid-reduce", "--help"], ["--reduction-tree"]),
], ids=lambda v: " ".join(v) if v[0].startswith("braid") else "")
def test_help(args, words):
    done = run(*args)
    for word in words:
        assert word in done.out, f"help does not mention {word}{done}"


@pytest.mark.parametrize("args", [["braid"], ["braid", "knit"], ["braid", "import"], ["braid", "compile"], ["braid", "run"], ["braid", "explain"], ["braid-run"]],
                         ids=" ".join)
def test_missing_arguments(args):
    run(*args, expect=BAD_INPUT, timeout=120)


def test_reference_pages():
    """Every operation and every pass of the tools is described on a page."""
    done = subprocess.run(["ninja", "-C", braidtest.BUILD, "docs"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {page.stem: page.read_text() for page in (braidtest.BUILD / "docs").glob("*.md")}
    for dialect in ("NN", "Comm", "RT"):
        sources = "".join(f.read_text() for f in (braidtest.ROOT / "dialects" / dialect / "IR").glob("*.td"))
        operations = re.findall(rf'^def {dialect}_\w+Op\s*: {dialect}_\w*Op<"(\w+)"', sources, re.MULTILINE)
        assert len(operations) > 5, operations
        for operation in operations:
            name = f"{dialect.lower()}.{operation}"
            assert re.search(rf"^### `{name}` .*\n\n_.+_$", pages[f"{dialect.lower()}-dialect"], re.MULTILINE), name
    assert "ShardingRuleOpInterface" in pages["comm-interfaces"] and "CostOpInterface" in pages["nn-interfaces"]
    passes = re.findall(r"^ {6}--(braid-\S+)", run("braid-opt", "--help").out.split("Pass Pipelines:")[0], re.MULTILINE)
    assert len(passes) > 20, passes
    for name in passes:
        assert any(re.search(rf"^### `-{name}`\n\n_.+_\n\n\S", page, re.MULTILINE) for page in pages.values()), name


def test_braid_run_links_no_compiler():
    libraries = subprocess.run(["ldd", braidtest.BIN / "braid-run"], capture_output=True, text=True, check=True).stdout
    for name in ("libLLVM", "libMLIR", "liblld", "libclang"):
        assert name not in libraries
    assert "libc.so" in libraries


def test_scripts_explain_themselves():
    for script in ("scripts/setup.sh", "scripts/build.sh", "scripts/lint.sh", "test/run.sh", "test/benchmark/run.sh",
                   "examples/embed-sentences/run.sh", "examples/write-your-own/run.sh", "examples/llama-layer/run.sh",
                   "examples/out-of-tree/run.sh"):
        for args, code in ((["--help"], 0), (["--no-such-argument"], 1)):
            done = subprocess.run([braidtest.ROOT / script, *args], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
            assert done.returncode == code, script
            assert ("usage:" in done.stdout) if code == 0 else ("no-such-argument" in done.stderr), script
