#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a model in PyTorch or ONNX Runtime in a separate process, so that its thread pool and memory are not shared.

    peers.py pytorch|onnx-export|onnxruntime CHECKPOINT WORK INPUT,... OUTPUT THREADS REPEAT ONNX ANSWER

Prints the seconds of each of REPEAT runs as JSON, after two runs that are not counted. WORK holds the inputs as .npy.
The result is written to the file ANSWER unless that is empty. onnx-export writes the file ONNX, which onnxruntime
reads.
"""
import json
import os
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
import numpy as np


def timed(run, repeat):
    times = []
    for _ in range(repeat + 2):
        begin = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - begin)
    return times[2:], result


def load(checkpoint, output):
    import torch
    from transformers import AutoModel, AutoModelForCausalLM
    causal = output == "logits"
    model = (AutoModelForCausalLM if causal else AutoModel).from_pretrained(checkpoint, local_files_only=True).float().eval()
    options = {"use_cache": False} if causal else {}

    class Named(torch.nn.Module):
        """Takes positional inputs and returns one result, as exporters require."""

        def __init__(self, names):
            super().__init__()
            self.model, self.names = model, names

        def forward(self, *values):
            return getattr(self.model(**dict(zip(self.names, values)), **options), output)

    return Named


def main():
    what, checkpoint, work, names, output, threads, repeat, onnx, answer = sys.argv[1:10]
    names = names.split(",")
    inputs = [np.load(f"{work}/{name}.npy") for name in names]
    if what == "onnxruntime":
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = int(threads), 1
        session = onnxruntime.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])
        # The exporter removes inputs that have no effect.
        wanted = {i.name for i in session.get_inputs()}
        feed = {name: value for name, value in zip(names, inputs) if name in wanted}
        times, result = timed(lambda: session.run([output], feed)[0], int(repeat))
    else:
        import torch
        torch.set_num_threads(int(threads))
        model, inputs = load(checkpoint, output)(names), [torch.from_numpy(value) for value in inputs]
        with torch.inference_mode():
            if what == "onnx-export":
                torch.onnx.export(model, tuple(inputs), onnx, input_names=names, output_names=[output], dynamo=True)
                return
            times, result = timed(lambda: model(*inputs).numpy(), int(repeat))
    if answer:
        np.save(answer, result)
    print(json.dumps(times))


if __name__ == "__main__":
    main()
