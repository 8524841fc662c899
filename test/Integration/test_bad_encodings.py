# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Encodings that cannot be: one error that names the collective and what was expected, exit status 1, no bundle. A payload
that is not the receiver's ends the run, and names the collective too."""
import os
import re
import subprocess

import pytest

import braidtest
from braidtest import BAD_INPUT, BIN, RANK_FAILED, braid, braid_run

MODULE = """
comm.mesh @mesh <tp = 2>
func.func @main(%x: tensor<1x4x64xf32> {nn.name = "x", comm.global_type = tensor<2x4x64xf32>, comm.sharding = #comm.sharding<@mesh, [{tp}, {}, {}]>},
                %i: tensor<4xi32> {nn.name = "i", comm.global_type = tensor<8xi32>, comm.sharding = #comm.sharding<@mesh, [{tp}]>})
    -> (tensor<1x4x64xf32> {nn.name = "sum"}, tensor<1x4x64xf32> {nn.name = "most"}, tensor<8xi32> {nn.name = "all"},
        tensor<1x4x64xf32> {nn.name = "one"}) attributes {nn.entry} {
  %sum = comm.all_reduce sum(%x) over <@mesh, {tp}> role "mlp.down" : tensor<1x4x64xf32>
  %most = comm.all_reduce max(%x) over <@mesh, {tp}> role "softmax.max" : tensor<1x4x64xf32>
  %all = comm.all_gather(%i) dim 0 over <@mesh, {tp}> role "ids" : tensor<4xi32> -> tensor<8xi32>
  %part = comm.reduce sum(%x) to 0 over <@mesh, {tp}> role "loss" : tensor<1x4x64xf32>
  %one = comm.broadcast(%part) from 0 over <@mesh, {tp}> role "tell" : tensor<1x4x64xf32>
  return %sum, %most, %all, %one : tensor<1x4x64xf32>, tensor<1x4x64xf32>, tensor<8xi32>, tensor<1x4x64xf32>
}
"""
LIST = "expects a list of PATTERN=ENCODING to quantize, such as '*=int8:128', got "


def wrong(encoding, message):
    return f"mlp.down={encoding}", f"{LIST}'mlp.down={encoding}': encoding '{encoding}': {message}"


REFUSED = {
    # What the type, or the collective, cannot take.
    "type": ("ids=int8:128", "'comm.all_gather' op 'ids' cannot be encoded as int8:128: it has values of tensor<4xi32>, and "
                             "encodings take rows of f32, f16 or bf16"),
    "maximum": ("softmax.max=bf16", "'comm.all_reduce' op 'softmax.max' cannot be encoded as bf16: it is no sum"),
    "reduce": ("loss=int8:128", "'comm.reduce' op 'loss' cannot be encoded as int8:128: a comm.reduce has no encoded form"),
    "only-such": ("so*=int8:128", "expects a collective that 'so*' names and that can be encoded, found none: 'softmax.max': it is no sum"),
    # Widths, groups, rotations, and options that do not go together.
    "wide": wrong("int9:128", "expects integers of 2 to 8 bits, got 9"),
    "narrow": wrong("int1", "expects integers of 2 to 8 bits, got 1"),
    "no-width": wrong("int", "expects integers of 2 to 8 bits, got ''"),
    "gather-half": ("mlp.down=int8/int16", LIST + "'mlp.down=int8/int16': encoding 'int16': expects integers of 2 to 8 bits, got 16"),
    "small-group": wrong("int8:16", "expects a group of 32 to 8192 elements that 8 divides, got 16"),
    "large-group": wrong("int8:16384", "expects a group of 32 to 8192 elements"),
    "odd-group": wrong("int8:100", "expects a group of 32 to 8192 elements that 8 divides, got 100"),
    "no-group": wrong("int8:", "expects a number of elements after ':', got ''"),
    "group-of-no-power-of-two": wrong("int8:96+hadamard64", "hadamard64 does not divide the group of 96"),
    "rotation-of-no-power-of-two": wrong("int8:96+hadamard48", "expects hadamard of a power of two from 16 to 256, got 48"),
    "rotation-of-8": wrong("int8+hadamard8", "expects hadamard of a power of two from 16 to 256, got 8"),
    "rotation-beyond-the-block": wrong("mxfp4+hadamard64", "hadamard64 does not divide the group of 32"),
    "spikes-of-nvfp4": wrong("nvfp4+spikes", "nvfp4 has no spikes"),
    "symmetric-floats": wrong("fp8e4m3+symmetric", "symmetric and zero-point are options of integers"),
    "group-of-a-cast": wrong("bf16:128", "a cast has no groups and no options"),
    "twice": wrong("int8+spikes+spikes", "the option 'spikes' stands twice"),
    "unknown": wrong("fp8", "expects int2 to int8, bf16, f16, fp8e4m3,"),
    "unknown-option": wrong("int8+fast", "expects an option symmetric, zero-point, bf16-scale, hadamardN or spikes, got 'fast'"),
    # Patterns.
    "nobody": ("mlp.up=int8:128", "expects collectives that 'mlp.up' names, found none among 'mlp.down', 'softmax.max', 'ids', 'loss', 'tell'"),
    "nobody-beside-others": ("*=int8:128,mlp.up=int8:128", "expects collectives that 'mlp.up' names, found none among 'mlp.down'"),
    "nobody-to-take-back": ("*=int8:128,mlp.up=none", "expects collectives that 'mlp.up' names, found none among 'mlp.down'"),
    "no-path": ("@main/@layer/mlp.down=int8:128", "expects collectives that '@main/@layer/mlp.down' names, found none among 'mlp.down'"),
    "no-pattern": ("int8:128", LIST + "'int8:128'"),
    "nothing-after": ("mlp.down=", LIST + "'mlp.down='"),
    "nothing-before": ("=int8:128", LIST + "'=int8:128'"),
    "comma-at-the-end": ("mlp.down=int8:128,", LIST + "''"),
    "bracket": ("mlp[=int8:128", LIST + "'mlp[=int8:128': invalid glob pattern"),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_quantize_refuses(reason, tmp_path):
    text, message = REFUSED[reason]
    (tmp_path / "module.mlir").write_text(MODULE)
    done = braid("compile", tmp_path / "module.mlir", "--quantize", text, "-o", tmp_path / "x.braid", expect=BAD_INPUT)
    assert "error: " + message in done.err, done
    assert done.err.count("error: ") == 1, done
    assert not (tmp_path / "x.braid").exists()


def test_what_run_and_opt_refuse_is_the_same(tmp_path):
    (tmp_path / "module.mlir").write_text(MODULE)
    text, message = REFUSED["wide"]
    done = braid("run", tmp_path / "module.mlir", "--quantize", text, "--random-inputs", 1, expect=BAD_INPUT)
    assert "error: " + message in done.err, done
    done = braidtest.run("braid-opt", tmp_path / "module.mlir", f"--braid-quantize-collectives=encodings={text}", expect=BAD_INPUT)
    assert "error: " + message in done.err, done


@pytest.mark.parametrize("line,encoding,message", [
    ("all_gather(%i)", "int8:128", "'comm.all_gather' op 'ids' cannot be encoded as 'int8:128': it has values of tensor<4xi32>"),
    ("all_reduce max(%x)", "int8:128", "'comm.all_reduce' op 'softmax.max' cannot be encoded as 'int8:128': it is no sum"),
    ("broadcast(%part)", "int8:128/int4:128", "'comm.broadcast' op 'tell' has one half, but two encodings 'int8:128/int4:128'"),
    ("all_reduce sum(%x)", "int1:128", "encoding 'int1:128': expects integers of 2 to 8 bits, got 1"),
    ("all_reduce sum(%x)", "int8:96+hadamard48", "encoding 'int8:96+hadamard48': expects hadamard of a power of two from 16 to 256, got 48"),
], ids=["type", "maximum", "halves", "width", "rotation"])
def test_an_attribute_is_refused(line, encoding, message, tmp_path):
    at = MODULE.index(f"comm.{line}")
    end = MODULE.index(" : tensor", at)
    (tmp_path / "module.mlir").write_text(f'{MODULE[:end]} {{comm.encoding = #comm.encoding<"{encoding}">}}{MODULE[end:]}')
    done = braid("compile", tmp_path / "module.mlir", "-o", tmp_path / "x.braid", expect=BAD_INPUT)
    # So do the file and the line, where an encoding is read before there is a collective.
    assert re.search(rf"module\.mlir:{MODULE.count(chr(10), 0, at) + 1}:\d+: error: {re.escape(message)}", done.err), done
    assert not (tmp_path / "x.braid").exists()


def test_only_one_side_of_a_pair(tmp_path):
    """A send and its receive have a role each."""
    (tmp_path / "module.mlir").write_text(PLAIN_HAND_OFF)
    done = braid("compile", tmp_path / "module.mlir", "--quantize", "hand-off=int8:128", "-o", tmp_path / "x.braid", expect=BAD_INPUT)
    assert re.search(r"error: .*rank 1 receives f32 \[4, 128\] at .*'hand-off#1'.*, where rank 0 sends i8 \[1, 544\] at .*'hand-off'", done.err), done
    assert not (tmp_path / "x.braid").exists()


# --- payloads of another encoding --------------------------------------------------------------------------------

# Payloads of as many bytes: only their headers tell one from the other.
HAND_OFF = """
comm.mesh @mesh <pp = 2>
func.func @main(%x: tensor<4x128xf32> {{nn.name = "x", comm.global_type = tensor<8x128xf32>, comm.sharding = #comm.sharding<@mesh, [{{pp}}, {{}}]>}})
    -> (tensor<4x128xf32> {{nn.name = "y", comm.global_type = tensor<8x128xf32>, comm.sharding = #comm.sharding<@mesh, [{{pp}}, {{}}]>}})
    attributes {{nn.entry}} {{
  comm.send(%x) pairs [0 -> 1] over <@mesh, {{pp}}> tag 1 role "hand-off" {{comm.encoding = #comm.encoding<"{sent}">}} : tensor<4x128xf32>
  %y = comm.recv pairs [0 -> 1] over <@mesh, {{pp}}> tag 1 role "hand-off" {{comm.encoding = #comm.encoding<"{expected}">}} : tensor<4x128xf32>
  return %y : tensor<4x128xf32>
}}
"""
PLAIN_HAND_OFF = re.sub(r" \{comm\.encoding = .*?\}", "", HAND_OFF.format(sent="", expected=""))


def on(transport):
    return ["--hosts", "localhost:2"] if transport == "ucx" else ["--transport", transport]


@pytest.mark.parametrize("transport", ["threads", "shm", "ucx"])
def test_a_payload_of_another_encoding(transport, ucx, tmp_path):
    sent, expected = "int8:128+symmetric", "fp8e4m3:128"
    (tmp_path / "module.mlir").write_text(HAND_OFF.format(sent=sent, expected=expected))
    braid("compile", tmp_path / "module.mlir", "-o", tmp_path / "bundle")
    done = braid_run(tmp_path / "bundle", "--random-inputs", 1, *on(transport), "--output", tmp_path / "out", expect=BAD_INPUT)
    assert re.search(rf"rank 1: .*hand-off.*expects a payload of {re.escape(expected)}, got {re.escape(sent)}", done.err), done
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("transport", ["threads", "shm", "ucx"])
def test_a_payload_that_is_as_expected(transport, ucx, tmp_path):
    (tmp_path / "module.mlir").write_text(HAND_OFF.format(sent="fp8e4m3:128", expected="fp8e4m3:128"))
    braid("compile", tmp_path / "module.mlir", "-o", tmp_path / "bundle")
    braid_run(tmp_path / "bundle", "--random-inputs", 1, *on(transport), "--output", tmp_path / "out")


def test_ranks_compiled_with_other_encodings(ucx, tmp_path):
    """They do not even meet."""
    (tmp_path / "module.mlir").write_text(PLAIN_HAND_OFF)
    for rank, encoding in enumerate(["int8:128+symmetric", "fp8e4m3:128"]):
        braid("compile", tmp_path / "module.mlir", "--quantize", f"hand-off*={encoding}", "-o", tmp_path / f"rank{rank}")
    started = [subprocess.Popen([BIN / "braid-run", tmp_path / f"rank{rank}", "--random-inputs", "1"], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True,
                                env={**os.environ, "BRAID_RANK": str(rank), "BRAID_SIZE": "2", "BRAID_RENDEZVOUS": f"file:{tmp_path}/meet"})
               for rank in range(2)]
    for process in started:
        out, err = process.communicate(timeout=120)
        assert process.returncode in (BAD_INPUT, RANK_FAILED), out + err
        assert re.search(r"error: rank 1 \(.*\) has the bundle with SHA-256 [0-9a-f]{64}, rank 0 has [0-9a-f]{64}", err), err
