#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that every constraint of a dialect's operations and attributes has a unique id, a verifier and a negative test.

A description lists `- (nn.linear_c1) ...`. The verifier's message ends with `[nn.linear_c1]`, and so does an
expected-error of a test. `- (nn.dropout_c4, ODS) ...` is a constraint that a type, an attribute constraint or a trait
enforces with a message of its own: a comment of the test names it, `// nn.dropout_c4`.
"""
import argparse
import pathlib
import re
import sys

DIALECTS = ("NN", "Comm", "RT")
ID = r"[a-z]+\.[a-z_]+_c[0-9]+"


def documented(folder):
    """id -> whether ODS enforces it; and what is wrong with the lists."""
    ids, errors = {}, []
    for path in sorted(folder.glob("*.td")):
        listed = False
        for line, text in enumerate(path.read_text().splitlines(), 1):
            # A list that several operations share is `code constraints`.
            begins = text.strip().startswith(("Constraints", "code constraints"))
            ended = not begins and "}]" in text
            listed, before = begins or (listed and not ended), listed
            if not (listed or before) or not text.strip().startswith("- "):
                continue
            if not (match := re.match(rf"\s*- \(({ID})(, ODS)?\) ", text)):
                errors.append(f"{path}:{line}: expects a constraint to begin with its id, got '{text.strip()}'")
            elif match[1] in ids:
                errors.append(f"{path}:{line}: {match[1]} is documented twice")
            else:
                ids[match[1]] = match[2] is not None
    return ids, errors


def check(root):
    lists = {dialect: documented(root / "dialects" / dialect / "IR") for dialect in DIALECTS}
    known = {i for ids, _ in lists.values() for i in ids}
    errors = []
    for dialect, (ids, wrong) in lists.items():
        errors += wrong
        code = "\n".join(path.read_text() for path in sorted((root / "dialects" / dialect / "IR").glob("*.cpp")))
        tests = "\n".join(path.read_text() for path in sorted((root / "test/Dialect" / dialect).glob("*.mlir")))
        verified = set(re.findall(rf'"[^"\n]*?({ID})\b', code))
        expected = set(re.findall(rf"expected-error.*\[({ID})\]\}}\}}", tests))
        named = set(re.findall(rf"^// ({ID})\b", tests, re.MULTILINE))
        for i, ods in ids.items():
            if ods and i in verified:
                errors.append(f"{i} is documented as enforced by ODS, and a verifier of {dialect} names it")
            if not ods and i not in verified:
                errors.append(f"{i} is in no verifier of {dialect}")
            if i not in (named if ods else expected):
                errors.append(f"{i} is in no {'comment' if ods else 'expected-error'} of test/Dialect/{dialect}")
        for i in sorted((verified | expected | named) - known):
            errors.append(f"{i} in {dialect} is not documented")
        print(f"constraints: {dialect} documents {len(ids)}")
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    errors = check(parser.parse_args().root)
    for error in errors:
        print(f"constraints: {error}", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
