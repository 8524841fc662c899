# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The results file: tables for people, followed by the same data as JSON. Missing measurements are listed with the
reason."""
import json

import plan

MEASURED, UNMEASURED, FAILED = "measured", "unmeasured", "failed"
OPENING, CLOSING = "```json\n", "```\n"
RUN_FIELDS = {"relative_l2": float, "allowed_relative_l2": float, "passed": bool, "median_run_s": float, "min_run_s": float,
              "runs": int, "bytes_sent_per_rank": int, "exposed_comm_s": float, "peak_memory_bytes": int}
KERNEL_FIELDS = {"kernel": str, "rows": int, "bytes": int, "seconds": float, "bytes_per_s": float, "of_copy": float}
COPY_FIELDS = {"bytes": int, "seconds": float, "bytes_per_s": float}
ENCODED_FIELDS = {"cases": int, "differing": int, "differences": list}
DIFFERENCE_FIELDS = {"case": str, "elements": int, "of": int}
CODEC_FIELDS = {"encoding": str, "type": str, "kernel": str, "bytes": int, "seconds": float, "bytes_per_s": float, "of_copy": float}
PYTORCH_FIELDS = {"median_s": float, "torch": str, "transformers": str}
COMMAND = "test/gpu/run.sh"


def unmeasured(reason, models=tuple(plan.MODELS), ranks=plan.RANKS):
    """The results for a machine on which nothing ran."""
    nothing = {"state": UNMEASURED, "reason": reason}
    return {"format_version": plan.FORMAT_VERSION, "date": None, "small": False, "gpus": [], "driver": None, "host": None,
            "copy": dict(nothing),
            "runs": [{**run, **nothing} for run in plan.runs(models, ranks)],
            "encoded": [{**run, **nothing} for run in plan.encoded(ranks)],
            "kernels": [{"model": model, **nothing} for model in models],
            "codecs": [{"bytes": size, **nothing} for size in plan.CODECS_BYTES],
            "sanitizers": [{"tool": tool, "model": model, "ranks": count, "encoding": encoding, **nothing}
                           for tool, model, count, encoding in plan.SANITIZED],
            "pytorch": [{**run, **nothing} for run in plan.pytorch(models)]}


class Malformed(Exception):
    pass


def check(data):
    """Raises Malformed with the first violation of the format."""
    def expect(holds, what):
        if not holds:
            raise Malformed(f"expects {what}")

    def fields(entry, types, of):
        for name, kind in types.items():
            value = entry.get(name)
            good = isinstance(value, (int, float)) and not isinstance(value, bool) if kind is float else type(value) is kind
            expect(good, f"'{name}' of {of} to be a {kind.__name__}, got {value!r}")

    def state(entry, of):
        expect(entry.get("state") in (MEASURED, UNMEASURED, FAILED), f"a state of {of}, got {entry.get('state')!r}")
        if entry["state"] != MEASURED:
            expect(isinstance(entry.get("reason"), str) and entry["reason"], f"a reason why {of} was not measured")
        return entry["state"] == MEASURED

    expect(isinstance(data, dict) and data.get("format_version") == plan.FORMAT_VERSION,
           f"format_version {plan.FORMAT_VERSION}, got {data.get('format_version')!r}")
    for name in ("date", "small", "gpus", "driver", "host", "copy", *plan.PARTS):
        expect(name in data, f"'{name}'")
    entries = [data["copy"], *(entry for part in plan.PARTS for entry in data[part])]
    if state(data["copy"], "the copy"):
        fields(data["copy"], COPY_FIELDS, "the copy")
    for run in data["runs"]:
        of = describe(run)
        if state(run, of):
            fields(run, RUN_FIELDS, of)
            expect(run["passed"] == (run["relative_l2"] <= run["allowed_relative_l2"]), f"'passed' of {of} to say what it measured")
    for entry in data["encoded"]:
        of = describe_encoded(entry)
        if state(entry, of):
            fields(entry, ENCODED_FIELDS, of)
            expect(entry["differing"] == len(entry["differences"]) <= entry["cases"], f"each difference of {of} once")
            for difference in entry["differences"]:
                fields(difference, DIFFERENCE_FIELDS, of)
    for entry in data["kernels"]:
        of = describe_kernels(entry)
        if state(entry, of):
            expect(isinstance(entry.get("kernels"), list) and entry["kernels"], f"a list of {of}")
            for kernel in entry["kernels"]:
                fields(kernel, KERNEL_FIELDS, of)
    for entry in data["codecs"]:
        of = describe_codecs(entry)
        if state(entry, of):
            fields(entry.get("copy", {}), COPY_FIELDS, f"the copy beside {of}")
            expect(isinstance(entry.get("codecs"), list) and entry["codecs"], f"a list of {of}")
            for codec in entry["codecs"]:
                fields(codec, CODEC_FIELDS, of)
    for entry in data["sanitizers"]:
        if state(entry, entry.get("tool")):
            fields(entry, {"errors": int}, entry["tool"])
    for entry in data["pytorch"]:
        if state(entry, describe_pytorch(entry)):
            fields(entry, PYTORCH_FIELDS, describe_pytorch(entry))
    if any(entry["state"] == MEASURED for entry in entries):
        expect(data["date"] and data["gpus"], "a date and a GPU beside what was measured")


def succeeded(data):
    return all(entry["state"] != FAILED and entry.get("passed", True) and not entry.get("differing", 0) and not entry.get("errors", 0)
               for entry in [data["copy"], *(entry for part in plan.PARTS for entry in data[part])])


def describe_model(entry):
    encoding = f", {entry['encoding']}" if entry["encoding"] else ""
    return f"{entry['model']} on {entry['ranks']} rank{'s' if entry['ranks'] > 1 else ''}{encoding}"


def describe_sanitizer(entry):
    return f"{entry['tool']} of {describe_model(entry)}"


def describe_encoded(entry):
    return f"{describe_model(entry)}, {entry['way']}"


def describe_kernels(entry):
    return f"the kernels of {entry['model']}"


def describe_codecs(entry):
    return f"the codecs of {entry['bytes'] / 2**20:g} MiB"


def describe_pytorch(entry):
    return f"PyTorch's {entry['model']}{', as a graph' if entry['graph'] else ''}"


def of_pytorch(run, data):
    """The ratio of a run's time to PyTorch's for the same model, which runs on one GPU alone; nothing where there is none."""
    if run["ranks"] > 1:
        return ""
    for entry in data["pytorch"]:
        if (entry["model"], entry["graph"], entry["state"]) == (run["model"], run["graph"], MEASURED):
            return f"{run['median_run_s'] / entry['median_s']:.2f}"
    return UNMEASURED


def describe(run):
    where = {("threads", False): "one GPU", ("threads", True): "one GPU, as a graph", ("nccl", False): "a GPU each"}
    return f"{describe_model(run)}, {where[run['transport'], run['graph']]}"


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def not_measured(entry):
    return f"{entry['state']}: {entry['reason']}".replace("|", "\\|").replace("\n", " ")


def render(data):
    check(data)
    host = data["host"] or {}
    about = [["date", data["date"] or UNMEASURED], ["GPU", ", ".join(data["gpus"]) or UNMEASURED],
             ["driver", data["driver"] or UNMEASURED], ["host", host.get("cpu", UNMEASURED)],
             ["models", "tiny, of the same families" if data["small"] else "of their own sizes, weights drawn from a seed"]]
    copy = data["copy"]
    copied = f"{copy['bytes_per_s'] / 1e12:.3f} TB/s" if copy["state"] == MEASURED else not_measured(copy)
    runs = []
    for run in data["runs"]:
        if run["state"] == MEASURED:
            runs.append([describe(run), f"{run['relative_l2']:.2e}", f"{run['allowed_relative_l2']:.0e}",
                         "yes" if run["passed"] else "NO", f"{run['median_run_s'] * 1e3:.3f}", of_pytorch(run, data),
                         f"{run['exposed_comm_s'] * 1e3:.3f}",
                         f"{run['bytes_sent_per_rank'] / 1e6:.3f}", f"{run['peak_memory_bytes'] / 1e6:.1f}"])
        else:
            runs.append([describe(run), not_measured(run), *[""] * 7])
    kernels = []
    for entry in data["kernels"]:
        if entry["state"] != MEASURED:
            kernels.append([entry["model"], not_measured(entry), *[""] * 4])
            continue
        for kernel in entry["kernels"]:
            kernels.append([entry["model"], f"`{kernel['kernel']}`", str(kernel["rows"]), f"{kernel['seconds'] * 1e6:.2f}",
                            f"{kernel['bytes_per_s'] / 1e9:.1f}", f"{kernel['of_copy']:.0%}"])
    encoded, differences = [], []
    for entry in data["encoded"]:
        if entry["state"] != MEASURED:
            encoded.append([describe_model(entry), entry["way"], not_measured(entry), ""])
            continue
        encoded.append([describe_model(entry), entry["way"], str(entry["cases"]), str(entry["differing"])])
        differences += [[describe_encoded(entry), one["case"], f"{one['elements']} of {one['of']}"] for one in entry["differences"]]
    codecs = []
    for entry in data["codecs"]:
        if entry["state"] != MEASURED:
            codecs.append([describe_codecs(entry), not_measured(entry), *[""] * 5])
            continue
        for codec in entry["codecs"]:
            codecs.append([codec["encoding"], codec["type"], codec["kernel"], str(codec["bytes"]), f"{codec['seconds'] * 1e6:.2f}",
                           f"{codec['bytes_per_s'] / 1e9:.1f}", f"{codec['of_copy']:.0%}"])
        codecs.append(["copy", "", "", str(entry["copy"]["bytes"]), f"{entry['copy']['seconds'] * 1e6:.2f}",
                       f"{entry['copy']['bytes_per_s'] / 1e9:.1f}", ""])
    sanitizers = [[entry["tool"], describe_model(entry),
                   f"{entry['errors']} errors" if entry["state"] == MEASURED else not_measured(entry)]
                  for entry in data["sanitizers"]]
    pytorch = [[entry["model"], "as a graph" if entry["graph"] else "run by run",
                f"{entry['median_s'] * 1e3:.3f}" if entry["state"] == MEASURED else not_measured(entry),
                f"torch {entry['torch']}, transformers {entry['transformers']}" if entry["state"] == MEASURED else ""]
               for entry in data["pytorch"]]
    return "\n".join([
        "# On a GPU\n",
        f"Written by `{COMMAND}`, which also measures what is unmeasured here (README.md beside it says how to run it). The block at the "
        "end has the same for programs.\n",
        table(["", ""], about),
        "## Models against the CPU\n",
        "The CPU's results come with the bundles, of quantized collectives and matmuls those that are quantized alike. Times are medians over runs, by "
        "the GPU's clock.\n",
        table(["run", "relative L2", "allowed", "passed", "median ms", "of PyTorch's time", "exposed communication ms",
               "sent per rank MB", "memory MB"], runs),
        "## Encoded collectives against the interpreter\n",
        "All ranks are on one GPU. Each case has one result, which is to have the interpreter's bits in every element.\n",
        table(["program", "way", "cases", "results that differ"], encoded),
        *([table(["run", "case that differs", "elements"], differences)] if differences else []),
        "## Kernels against a copy within the GPU's memory\n",
        f"Bytes read and written in a second; the copy: {copied}.\n",
        table(["model", "kernel", "rows", "us", "GB/s", "of the copy"], kernels),
        "## Codecs against a copy within the GPU's memory\n",
        "Bytes of values and payloads, read and written, and a copy of as many bytes. decode_sum adds the values of four senders.\n",
        table(["encoding", "values", "kernel", "bytes", "us", "GB/s", "of the copy"], codecs),
        "## compute-sanitizer\n",
        table(["tool", "run", "found"], sanitizers),
        "## PyTorch on the same models\n",
        "Random weights, f32 without TF32, with transformers' kernels; the models on one rank are compared with it above.\n",
        table(["model", "way", "median ms", "versions"], pytorch),
        OPENING + json.dumps(data, indent=1) + "\n" + CLOSING])


def parse(text):
    """Parses the output of `render`."""
    if OPENING not in text:
        raise Malformed("expects a block of JSON")
    block = text.split(OPENING, 1)[1]
    if CLOSING not in block:
        raise Malformed("expects the end of the block of JSON")
    data = json.loads(block.split(CLOSING, 1)[0])
    check(data)
    return data


if __name__ == "__main__":
    # The content of RESULTS.md before the first measurement.
    print(render(unmeasured("no GPU was at hand")), end="")
