# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lint checks that constraints have ids in the description, the verifier and a negative test."""
import shutil
import subprocess

import pytest

import braidtest

NN_OPS, TESTS = "dialects/NN/IR/NNOps.td", "test/Dialect/NN/invalid.mlir"


def check(root):
    done = subprocess.run([braidtest.ROOT / "scripts/constraints.py", "--root", root], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


@pytest.fixture
def tree(tmp_path):
    for folder in ("dialects", "test/Dialect"):
        shutil.copytree(braidtest.ROOT / folder, tmp_path / folder)
    return tmp_path


def test_this_tree(tree):
    assert check(tree) == (0, "")


@pytest.mark.parametrize("file,old,new,error", [
    ("dialects/NN/IR/NNVerifiers.cpp", '"nn.linear_c2"', '""', "nn.linear_c2 is in no verifier of NN"),
    (TESTS, " [nn.linear_c2]", "", "nn.linear_c2 is in no expected-error of test/Dialect/NN"),
    ("test/Dialect/NN/reference-ops-invalid.mlir", "// nn.dropout_c4\n", "", "nn.dropout_c4 is in no comment of test/Dialect/NN"),
    (NN_OPS, "(nn.linear_c2)", "(nn.linear_c1)", "nn.linear_c1 is documented twice"),
    (NN_OPS, "(nn.linear_c2) ", "", "expects a constraint to begin with its id, got '- the result's shape"),
    (NN_OPS, "(nn.linear_c2)", "(nn.linear_c4)", "nn.linear_c2 in NN is not documented"),
    (NN_OPS, "(nn.linear_c2)", "(nn.linear_c2, ODS)",
     "nn.linear_c2 is documented as enforced by ODS, and a verifier of NN names it"),
], ids=["verifier", "test", "comment", "twice", "no id", "unknown", "ODS"])
def test_what_is_missing(tree, file, old, new, error):
    text = (tree / file).read_text()
    assert old in text
    (tree / file).write_text(text.replace(old, new))
    code, errors = check(tree)
    assert code == 1 and error in errors, errors
