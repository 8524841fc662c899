#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Starts a command in a test host as ssh would: agent.py LAB [OPTIONS] [USER@]HOST COMMAND... A launcher starts one agent for each host
at once, and what they cost is part of a start: so this imports little, and the program `agent` of a lab runs it without site packages."""
import os
import sys

from hosts import LabError, enter, host_of

TAKES_VALUE = "BbcDEeFIiJLlmOoPpQRSWw"  # options of ssh


def run(name, words):
    """Gives the command what sshd would: a shell, a small environment, the home directory. Returns its exit status."""
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if len(option) == 2 and option[1] in TAKES_VALUE and rest:
            rest.pop(0)
    if len(rest) < 2:
        raise LabError("the agent expects [OPTIONS] HOST COMMAND...")
    kept = {key: os.environ[key] for key in ("HOME", "LOGNAME", "USER", "LANG") if key in os.environ}
    try:
        host = host_of(name, rest[0].rpartition("@")[2])
    except LabError as error:
        raise LabError(f"could not resolve hostname {rest[0]}: {error}") from None
    kept["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return enter(name, host, ["/bin/sh", "-c", " ".join(rest[1:])], kept.get("HOME", "/"), kept, relay=False)


def main():
    try:
        return run(sys.argv[1], sys.argv[2:])
    except LabError as error:
        print(f"agent: {error}", file=sys.stderr)
        return 255  # as ssh


if __name__ == "__main__":
    sys.exit(main())
