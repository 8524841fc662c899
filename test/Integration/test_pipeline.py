# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pipelines whose stages are functions of their own ranks (examples/programs/pipeline.py): every way to run them gives NumPy's
result, each rank has its own stage's commands only, and faults are refused with both stages named."""
import json
import re
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import save_file

import models
from braidtest import BAD_INPUT, ROOT, braid

PIPELINE = ROOT / "examples/programs/pipeline.py"
ROWS, WIDTH, HIDDEN = 8, 16, 32
WAYS = {"threads": ["--transport", "threads", "--repeat", 20], "shm": ["--transport", "shm", "--repeat", 20],
        "orders": ["--target", "program-interpreter", "--schedules", 100], "reference": ["--target", "reference"]}
# stages, micro-batches, ranks of a stage
FORMS = [(2, 4, 1), (2, 4, 2), (3, 5, 1), (4, 2, 1)]


def printed(stages, micro_batches, tp=1):
    arguments = [str(stages), str(micro_batches), "--tp", str(tp)]
    return subprocess.run([sys.executable, PIPELINE, *arguments], capture_output=True, text=True, check=True).stdout


def write(tmp_path, text):
    path = tmp_path / "pipeline.mlir"
    path.write_text(text)
    return path


def without_pipeline(stages, inputs, targets, weights):
    """The same training step on the whole batch, in double precision."""
    x, t = (np.concatenate(values).astype(np.float64) for values in (inputs, targets))
    kept, results = [], {}
    for s in range(stages):
        u, d = (weights[f"{name}.{s}"].astype(np.float64) for name in "ud")
        z = x @ u.T
        kept.append((x, z, u, d))
        x = (z * z) @ d.T
    for m, y in enumerate(np.split(x, len(inputs))):
        results[f"y{m}"] = y
    dy = x + t
    for s in reversed(range(stages)):
        x, z, u, d = kept[s]
        dz = (dy @ d) * 2 * z
        results[f"down{s}"], results[f"up{s}"] = dy.T @ (z * z), dz.T @ x
        dy = dz @ u
    return results


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stages, micro_batches, tp", FORMS)
def test_gradients(tmp_path, stages, micro_batches, tp, way):
    random = np.random.default_rng(3)
    values = lambda count, *shape: [random.standard_normal(shape).astype(np.float32) for _ in range(count)]
    inputs, targets = values(micro_batches, ROWS, WIDTH), values(micro_batches, ROWS, WIDTH)
    weights = {f"u.{s}": 0.15 * v for s, v in enumerate(values(stages, HIDDEN, WIDTH))}
    weights |= {f"d.{s}": 0.15 * v for s, v in enumerate(values(stages, WIDTH, HIDDEN))}
    save_file(weights, tmp_path / "weights.safetensors")
    files = models.write_inputs({f"{name}{m}": v for name, all in (("x", inputs), ("t", targets)) for m, v in enumerate(all)},
                                tmp_path / "inputs")
    given = [argument for name, path in files.items() for argument in ("--input", f"{name}={path}")]
    expected = without_pipeline(stages, inputs, targets, weights)
    done = braid("run", write(tmp_path, printed(stages, micro_batches, tp)), *given, "--weights", tmp_path / "weights.safetensors",
                 "--check", "reference", "--output", tmp_path / "out", *WAYS[way])
    assert done.out.count(": passed") == len(expected), done.out
    if way == "orders":
        assert "order: no two commands that share memory are unordered" in done.out
        assert "100 orders of" in done.out
    # Every stage squares, which doubles relative errors: sums of AVX2 exceed 2e-6 from the fourth stage on.
    bound = 2e-6 * 2**max(0, stages - 3)
    for name, value in expected.items():
        assert models.relative_l2(np.load(tmp_path / "out" / f"{name}.npy"), value) < bound, name


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pipeline")
    braid("compile", write(folder, printed(2, 4)), "-o", folder / "pipeline.braid")
    return folder / "pipeline.braid"


def procedures_of(bundle, rank):
    found = json.loads(braid("explain", bundle, "--rank", rank, "--json").out)["procedures"]
    return {procedure["name"]: procedure for procedure in found}


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_runs_its_own_stage_only(bundle, rank):
    procedures = procedures_of(bundle, rank)
    own = {f"forward{rank}": 4, f"backward{rank}_first": 1, f"backward{rank}": 3, "main": 1}
    assert {name: p["executions"] for name, p in procedures.items()} == own
    calls = [command["callee"] for command in procedures["main"]["queues"]["compute"] if command["kind"] == "call"]
    forward, first, backward = f"forward{rank}", f"backward{rank}_first", f"backward{rank}"
    one_each = [forward, first, forward, backward, forward, backward, forward, backward]
    assert calls == (one_each if rank == 1 else [forward, *one_each[:1], first, forward, backward, forward, backward, backward])
    kinds = {name: [c["kind"] for c in p["queues"]["compute"]] for name, p in procedures.items()}
    # 2 products forward; 4 backward, one less where no gradient is sent.
    assert kinds[forward].count("matmul") == 2 and kinds[backward].count("matmul") == 3 + rank
    assert "matmul" not in kinds["main"] and "kernel" not in kinds["main"]


def test_the_report_counts_what_a_rank_has(bundle, tmp_path):
    braid("run", bundle, "--random-weights", 1, "--random-inputs", 1, "--report", tmp_path / "report.json")
    report = json.loads((tmp_path / "report.json").read_text())
    expanded = []
    for rank in (0, 1):
        procedures = procedures_of(bundle, rank)
        expanded.append(sum(p["executions"] * sum(c["kind"] != "call" for q in p["queues"].values() for c in q)
                            for p in procedures.values()))
    assert [r["commands"] for r in report["per_rank"]] == expanded
    weights, batch = 4 * 2 * WIDTH * HIDDEN, 4 * ROWS * WIDTH
    assert [r["parameter_bytes"] for r in report["per_rank"]] == [weights, weights]
    # Four inputs and the gradients; four targets and outputs and the gradients.
    assert [r["input_output_bytes"] for r in report["per_rank"]] == [4 * batch + weights, 8 * batch + weights]
    names = {c["identity"] for c in report["collectives"]}
    assert {"@main/@forward0/activation", "@main/@forward1/activation"} <= {re.sub("#[0-9]+", "", name) for name in names}


def test_explain_says_who_runs_what(bundle):
    text = braid("explain", bundle).out
    assert "2 ranks, which run what follows except where a line says 'on'" in text
    assert "takes 'x0' f32[8, 16], on {pp = [0]}" in text and "gives 'up1' f32[32, 16], on {pp = [1]}" in text
    assert re.search(r"call +@forward0 on \{pp = \[0\]\}, identity @forward0#0", text), text
    assert "@forward1" not in braid("explain", bundle, "--rank", 0).out


def test_only_the_order_of_each_stage_matters(tmp_path):
    """Calls of different stages stand in any order: the results have the same bits."""
    head, body = printed(3, 4).split("attributes {nn.entry} {\n")
    lines = body.splitlines(keepends=True)
    calls = [line for line in lines if "func.call" in line]
    others = [line for line in lines if "func.call" not in line]
    of_stage = [[line for line in calls if f"{{pp = [{s}]}}" in line] for s in range(3)]
    assert sum(map(len, of_stage)) == len(calls) == 24
    results = []
    for seed in range(4):
        random, rest, mixed = np.random.default_rng(seed), [list(stage) for stage in of_stage], []
        while any(rest):
            stage = random.choice([s for s in range(3) if rest[s]])
            mixed.append(rest[stage].pop(0))
        parameters, end = [line for line in others if "nn.parameter" in line], [line for line in others if "nn.parameter" not in line]
        out = tmp_path / str(seed)
        text = head + "attributes {nn.entry} {\n" + "".join(parameters + mixed + end)
        braid("run", write(tmp_path, text), "--random-weights", 1, "--random-inputs", 1, "--output", out)
        results.append({path.name: path.read_bytes() for path in sorted(out.iterdir())})
    assert len(results[0]) == 4 + 6
    assert all(other == results[0] for other in results[1:])


@pytest.mark.parametrize("stages, micro_batches, tp", FORMS)
def test_no_copies(tmp_path, stages, micro_batches, tp):
    assert "rt.copy" not in braid("compile", write(tmp_path, printed(stages, micro_batches, tp)), "--emit=rt").out


# --- faults ------------------------------------------------------------------------------------------------------


def refused(tmp_path, text):
    return braid("compile", write(tmp_path, text), "-o", tmp_path / "never.braid", expect=BAD_INPUT).err


ON = {stage: f"comm.on = #comm.place<@mesh, {{pp = [{stage}]}}>" for stage in (0, 1)}
CALLS = {
    "forward0": f"  func.call @forward0(%x) {{{ON[0]}}} : (tensor<4xf32>) -> ()\n",
    "forward1": f"  %y = func.call @forward1() {{{ON[1]}}} : () -> tensor<4xf32>\n",
    "backward1": f"  func.call @backward1(%y) {{{ON[1]}}} : (tensor<4xf32>) -> ()\n",
    "backward0": f"  %g = func.call @backward0() {{{ON[0]}}} : () -> tensor<2xf32>\n",
}
FUNCTIONS = """
comm.mesh @mesh <pp = 2>
func.func private @forward0(%x: tensor<4xf32>) {
  comm.send(%x) pairs [0 -> 1] over <@mesh, {pp}> role "activation" : tensor<4xf32>
  return
}
func.func private @forward1() -> tensor<4xf32> {
  %x = comm.recv pairs [0 -> 1] over <@mesh, {pp}> role "activation" : tensor<4xf32>
  return %x : tensor<4xf32>
}
func.func private @backward1(%y: tensor<4xf32>) {
  %g = nn.slice %y dim 0 from 0 size 2 : tensor<4xf32> -> tensor<2xf32>
  comm.send(%g) pairs [1 -> 0] over <@mesh, {pp}> tag 1 role "gradient" : tensor<2xf32>
  return
}
func.func private @backward0() -> tensor<2xf32> {
  %g = comm.recv pairs [1 -> 0] over <@mesh, {pp}> tag 1 role "gradient" : tensor<2xf32>
  return %g : tensor<2xf32>
}
"""


def two_stages(*order):
    """A forward and a backward pass of two stages, in this order of calls."""
    return (f"{FUNCTIONS}func.func @main(%x: tensor<4xf32> {{nn.name = \"x\", {ON[0]}}})\n"
            f"    -> (tensor<4xf32> {{nn.name = \"y\", {ON[1]}}}, tensor<2xf32> {{nn.name = \"g\", {ON[0]}}}) attributes {{nn.entry}} {{\n"
            + "".join(CALLS[name] for name in order) + "  return %y, %g : tensor<4xf32>, tensor<2xf32>\n}\n")


def test_calls_of_other_ranks_may_stand_in_any_order(tmp_path):
    # Only what a rank itself runs is in its order.
    for order in (("forward0", "forward1", "backward1", "backward0"), ("forward1", "backward1", "forward0", "backward0")):
        out = braid("run", write(tmp_path, two_stages(*order)), "--random-inputs", 1, "--check", "reference").out
        assert out.count(": passed") == 2, out


def test_a_gradient_awaited_before_its_activation_is_sent(tmp_path):
    err = refused(tmp_path, two_stages("backward0", "forward0", "forward1", "backward1"))
    assert ("deadlock: rank 0 waits for a send of rank 1 at procedure 'backward0', communication command 1 ('gradient'); "
            "rank 1 waits for a send of rank 0 at procedure 'forward1', communication command 1 ('activation')" in err), err


def test_both_stages_receive_first(tmp_path):
    stage = """func.func private @stage{0}() -> tensor<4xf32> {{
  %x = comm.recv pairs [{1} -> {0}] over <@mesh, {{pp}}> role "from {1}" : tensor<4xf32>
  comm.send(%x) pairs [{0} -> {1}] over <@mesh, {{pp}}> role "from {0}" : tensor<4xf32>
  return %x : tensor<4xf32>
}}
"""
    text = "comm.mesh @mesh <pp = 2>\n" + stage.format(0, 1) + stage.format(1, 0) + f"""
func.func @main() -> (tensor<4xf32> {{nn.name = "y", {ON[1]}}}) attributes {{nn.entry}} {{
  %x = func.call @stage0() {{{ON[0]}}} : () -> tensor<4xf32>
  %y = func.call @stage1() {{{ON[1]}}} : () -> tensor<4xf32>
  return %y : tensor<4xf32>
}}
"""
    err = refused(tmp_path, text)
    assert ("deadlock: rank 0 waits for a send of rank 1 at procedure 'stage0', communication command 1 ('from 1'); "
            "rank 1 waits for a send of rank 0 at procedure 'stage1', communication command 1 ('from 0')" in err), err


def test_swapped_receives(tmp_path):
    # Two messages of one tag, received in the other order.
    text = f"""
comm.mesh @mesh <pp = 2>
func.func private @first(%a: tensor<4xf32>, %b: tensor<2xf32>) {{
  comm.send(%a) pairs [0 -> 1] over <@mesh, {{pp}}> role "a" : tensor<4xf32>
  comm.send(%b) pairs [0 -> 1] over <@mesh, {{pp}}> role "b" : tensor<2xf32>
  return
}}
func.func private @last() -> (tensor<4xf32>, tensor<2xf32>) {{
  %b = comm.recv pairs [0 -> 1] over <@mesh, {{pp}}> role "b" : tensor<2xf32>
  %a = comm.recv pairs [0 -> 1] over <@mesh, {{pp}}> role "a" : tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<2xf32>
}}
func.func @main(%a: tensor<4xf32> {{nn.name = "a", {ON[0]}}}, %b: tensor<2xf32> {{nn.name = "b", {ON[0]}}})
    -> (tensor<4xf32> {{nn.name = "y", {ON[1]}}}, tensor<2xf32> {{nn.name = "z", {ON[1]}}}) attributes {{nn.entry}} {{
  func.call @first(%a, %b) {{{ON[0]}}} : (tensor<4xf32>, tensor<2xf32>) -> ()
  %y, %z = func.call @last() {{{ON[1]}}} : () -> (tensor<4xf32>, tensor<2xf32>)
  return %y, %z : tensor<4xf32>, tensor<2xf32>
}}
"""
    err = refused(tmp_path, text)
    assert re.search(r"rank 1 receives f32 \[2\] at procedure 'last', communication command [0-9]+ \('b'\), where rank 0 sends f32 \[4\] at "
                     r"procedure 'first', communication command [0-9]+ \('a'\) \(message 0 with tag 0\)", err), err


def test_a_stage_that_does_not_exist(tmp_path):
    err = refused(tmp_path, printed(2, 1).replace("{comm.on = #comm.place<@mesh, {pp = [1]}>} :", "{comm.on = #comm.place<@mesh, {pp = [2]}>} :", 1))
    assert "'func.call' op axis 'pp' of size 2 has no coordinate 2 [comm.place_c3]" in err, err


def test_a_value_of_another_stage(tmp_path):
    text = printed(2, 1).replace("func.call @backward0_first(%u0, %d0, %x0, %z0.0,", "func.call @backward0_first(%u0, %d0, %x0, %z0.1,", 1)
    err = refused(tmp_path, text)
    assert "'func.call' op on {pp = [0]} reads result 1 of the call of 'forward1', which only {pp = [1]} have" in err, err


def test_a_weight_of_another_stage(tmp_path):
    err = refused(tmp_path, printed(2, 1).replace("func.call @forward0(%u0,", "func.call @forward0(%u1,", 1))
    assert "'func.call' op on {pp = [0]} reads parameter 'u.1', which only {pp = [1]} have" in err, err


def test_a_result_declared_elsewhere(tmp_path):
    text = printed(2, 1)
    declared = '{nn.name = "up1", comm.on = #comm.place<@mesh, {pp = [1]}>}'
    assert declared in text
    err = refused(tmp_path, text.replace(declared, '{nn.name = "up1"}'))
    assert ("'func.return' op expects result 3 of 'main' on all ranks, got result 0 of the call of 'backward1_first', which only "
            "{pp = [1]} have" in err), err


def test_a_message_that_nobody_receives(tmp_path):
    err = refused(tmp_path, printed(2, 2).replace('tag 0 role "activation"', 'tag 5 role "activation"', 1))
    assert ("rank 1 receives at procedure 'forward1', communication command 1 ('activation'), what rank 0 does not send (message 0 "
            "with tag 0)" in err), err


STATES = ROOT / "test/Integration/Inputs/stage_states.mlir"


@pytest.mark.parametrize("way", WAYS)
def test_a_stage_keeps_its_own_state(tmp_path, way):
    """Three tokens, each in a process of its own that is given the states of the last one."""
    random = np.random.default_rng(5)
    weights = {name: random.standard_normal((4, 4)).astype(np.float32) for name in ("w.0", "w.1")}
    save_file(weights, tmp_path / "weights.safetensors")
    keys = [np.zeros((2, 8, 4)), np.zeros((2, 8, 4))]
    given = []
    for position in range(3):
        x = random.standard_normal((2, 1, 4)).astype(np.float32)
        np.save(tmp_path / "x.npy", x)
        np.save(tmp_path / "position.npy", np.full(2, position, np.int32))
        out = tmp_path / f"token{position}"
        braid("run", STATES, "--weights", tmp_path / "weights.safetensors", "--input", f"x={tmp_path / 'x.npy'}", "--input",
              f"position={tmp_path / 'position.npy'}", *given, *(argument for argument in WAYS[way] if argument not in ("--repeat", 20)), "--output", out)
        given = ["--state", out]
        for stage in range(2):
            keys[stage][:, position:position + 1] = x.astype(np.float64) @ weights[f"w.{stage}"].T
            x = np.tanh(keys[stage][:, position:position + 1])
            assert np.allclose(np.load(out / f"keys.{stage}.npy"), keys[stage], atol=1e-5)
    assert np.allclose(np.load(out / "y.npy"), np.tanh(keys[1]), atol=1e-5)


@pytest.mark.parametrize("edit, message", [
    (("nn.state, comm.on = #last", "nn.state, comm.on = #first"),
     "'func.func' op expects the new value of state 'keys.1' on {pp = [0]}, where the state is, got {pp = [1]}"),
    (("call @end(%w1, %k1", "call @end(%w1, %k0"), "'func.call' op on {pp = [1]} reads argument 2, which only {pp = [0]} have"),
    (("call @begin(%x, %w0, %k0, %position) {comm.on = #first}", "call @begin(%x, %w0, %k0, %position)"),
     "'func.call' op on all ranks reads argument 0, which only {pp = [0]} have"),
])
def test_a_state_of_another_stage(tmp_path, edit, message):
    text = STATES.read_text()
    assert text.count(edit[0]) == 1
    err = refused(tmp_path, text.replace(*edit))
    assert message in err, err


PARTS = ROOT / "test/Integration/Inputs/stage_parts.mlir"


@pytest.mark.parametrize("way", WAYS)
def test_micro_batches_are_parts_of_one_input(tmp_path, way):
    random = np.random.default_rng(7)
    weights = {name: random.standard_normal((4, 4)).astype(np.float32) for name in ("w.0", "w.1")}
    save_file(weights, tmp_path / "weights.safetensors")
    x = random.standard_normal((4, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    braid("run", PARTS, "--weights", tmp_path / "weights.safetensors", "--input", f"x={tmp_path / 'x.npy'}", *WAYS[way], "--output", tmp_path / "out")
    expected = x.astype(np.float64) @ weights["w.0"].T @ weights["w.1"].T
    assert np.allclose(np.load(tmp_path / "out/y.npy"), expected, atol=1e-5)


def test_parts_of_values_of_stages(tmp_path):
    assert "rt.copy" not in braid("compile", PARTS, "--emit=rt").out
    text = PARTS.read_text()
    edits = {
        # A whole of parts that no rank has all of, and a part that another stage reads.
        "nn.concat %c, %d dim 0": ("nn.concat %c, %a dim 0", "'nn.concat' op on {pp = [1]} reads result 0 of 'nn.slice', which only {pp = [0]} have"),
        "call @begin(%b, %w0) {comm.on = #first}": ("call @begin(%b, %w0) {comm.on = #last}", "'func.call' op on {pp = [1]} reads result 0 of 'nn.slice', which only {pp = [0]} have"),
        "return %y : tensor<4x4xf32>": ("return %x : tensor<4x4xf32>", "'func.return' op expects result 0 of 'main' on {pp = [1]}, got argument 0, which only {pp = [0]} have"),
    }
    for old, (new, message) in edits.items():
        assert text.count(old) == 1
        assert message in refused(tmp_path, text.replace(old, new))
    # Parts of different memory are copied, which is a command of all ranks.
    apart = text.replace("%y = nn.concat %c, %d dim 0", "%z = nn.concat %b, %a dim 0").replace("return %y : tensor<4x4xf32>", "return %z : tensor<4x4xf32>").replace('"y", comm.on = #last', '"y", comm.on = #first')
    err = refused(tmp_path, apart)
    assert "'rt.copy' op (copy on the compute queue) uses a value of other ranks" in err and "on rank 1" in err, err
