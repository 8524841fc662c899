#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times models in PyTorch, as transformers has them, with random weights in f32 without TF32: eagerly, and as a CUDA graph.

Reads a list of models as JSON: name, config, options of `braid import`, and a folder with inputs. Prints the list of results, each
with a median time or a reason why there is none. Needs torch and transformers; run.py starts it.
"""
import argparse
import json
import pathlib
import statistics
import sys
import time


def make_model(spec, device):
    import torch
    import transformers
    config = transformers.AutoConfig.for_model(**json.loads(pathlib.Path(spec["config"]).read_text()))
    if "--layers" in spec["import"]:
        config.num_hidden_layers = int(spec["import"][spec["import"].index("--layers") + 1])
    with torch.device(device):
        if config.model_type == "bert":
            model = transformers.BertModel(config, add_pooling_layer=False)
        elif "last_hidden_state" in spec["import"]:
            model = transformers.LlamaModel(config)
        else:
            model = transformers.LlamaForCausalLM(config)
    return model.to(torch.float32).eval()


def read_inputs(folder, device):
    import numpy
    import torch
    return {path.stem: torch.from_numpy(numpy.load(path)).to(device) for path in sorted(pathlib.Path(folder).glob("*.npy"))}


def seconds_of(run, device, repeat):
    """The median of single runs, by the GPU's clock where there is one, after three that warm up."""
    import torch
    times = []
    for _ in range(3 + repeat):
        if device == "cpu":
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
            continue
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return statistics.median(times[3:])


def graph_of(run):
    import torch
    # Libraries set themselves up in the first runs, which cannot be captured.
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def measure(spec, device, repeat):
    """The results of a model's runs and of its graph's."""
    import torch
    results = [{"model": spec["name"], "graph": graph} for graph in (False, True)]
    for entry in results:
        try:
            if entry["graph"] and device == "cpu":
                raise RuntimeError("graphs need a GPU")
            if not entry["graph"]:
                model, inputs = make_model(spec, device), read_inputs(spec["inputs"], device)
                options = {} if model.config.model_type == "bert" else {"use_cache": False}

            def run():
                model(**inputs, **options)

            with torch.inference_mode():
                entry["median_s"] = seconds_of(graph_of(run) if entry["graph"] else run, device, repeat)
        except Exception as error:  # whatever a version of these packages does not do is told, and the rest is measured
            text = " ".join(str(error).split())
            entry["reason"] = f"{type(error).__name__}: {text[:300]}"
    return results


def main():
    parser = argparse.ArgumentParser(prog="pytorch.py")
    parser.add_argument("models", help="JSON")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--repeat", type=int, default=20)
    args = parser.parse_args()
    try:
        import numpy  # noqa: F401
        import torch
        import transformers
    except ImportError as error:
        sys.exit(f"{sys.executable}: {error}")
    if args.device == "cuda" and not torch.cuda.is_available():
        sys.exit(f"PyTorch {torch.__version__} sees no GPU")
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(0)
    entries = [entry for spec in json.loads(args.models) for entry in measure(spec, args.device, args.repeat)]
    print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__, "models": entries}))


if __name__ == "__main__":
    main()
