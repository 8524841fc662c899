#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adds up a test run: summary.py DIRECTORY STAGE=OUTCOME..., with the stages' JUnit files in DIRECTORY.

A stage that failed without a failing test in its file (a build that broke, a runner that died), and a test stage that
went well but left no file, count as one failure each: a run in which something went wrong can never look clean.
"""
import glob
import os
import sys
import xml.etree.ElementTree as ElementTree

STAGE_FILES = {"unit": "ctest-build.xml", "asan": "ctest-build-asan.xml", "tsan": "ctest-build-tsan*.xml",
               "lit": "lit.xml", "integration": "integration.xml"}


def outcomes(pattern):
    passed, failed, skipped = 0, [], 0
    paths = sorted(glob.glob(pattern))
    if not paths:
        raise OSError(f"there is no {os.path.basename(pattern)}")
    for case in (case for path in paths for case in ElementTree.parse(path).iter("testcase")):
        name = f"{case.get('classname', '')} {case.get('name', '')}".strip()
        if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
            failed.append(name)
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def main():
    directory = sys.argv[1]
    passed, failed, skipped = 0, [], 0
    for stage, outcome in (argument.split("=", 1) for argument in sys.argv[2:]):
        in_stage = []
        if stage in STAGE_FILES:
            try:
                p, in_stage, s = outcomes(os.path.join(directory, STAGE_FILES[stage]))
                passed, skipped = passed + p, skipped + s
                if outcome == "ok" and p + s == 0 and not in_stage:
                    in_stage = [f"stage {stage} ran no test"]
            except (OSError, ElementTree.ParseError) as error:
                in_stage = [f"stage {stage} left no readable results ({error})"]
        elif stage in ("lint", "fuzz") and outcome == "ok":
            passed += 1
        if outcome != "ok" and not in_stage:
            in_stage = [f"stage {stage}"]
        failed += in_stage
    if failed:
        print("failed:")
        for name in failed:
            print("  " + name)
    print(f"{passed} passed, {len(failed)} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
