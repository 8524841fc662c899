# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wrong and hostile input: one clear error, exit status 1, no file left, no crash, no hang."""
import json
import re
import shutil
import struct
import zipfile

import numpy as np
import pytest

import braidtest
import models
from braidtest import BAD_INPUT, braid

TINY = models.GOLDEN / "tiny-bert"
TIME_LIMIT = 120


def refused(tool, *args, names=(), absent=()):
    """Expects a refused run: standard error matches each of `names` (regular expressions), and none of `absent`
    exists."""
    done = braidtest.run(tool, *args, expect=BAD_INPUT, timeout=TIME_LIMIT)
    for name in names:
        assert re.search(name, done.err, re.IGNORECASE), f"expects the message to say /{name}/{done}"
    for path in absent:
        assert not path.exists(), f"left {path}{done}"
    return done


def nothing_in(directory):
    left = sorted(str(p.relative_to(directory)) for p in directory.rglob("*")) if directory.exists() else []
    assert not left, f"left behind: {left}"


# --- checkpoints -------------------------------------------------------------------------------------------------


def read_safetensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + size]), data[8 + size:]


def write_safetensors(path, header, body):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


WEIGHT = "encoder.layer.0.attention.self.query.weight"


def edit(change):
    """Makes a damaged file from the good one by changing its parsed header and its body."""
    def apply(path):
        header, body = read_safetensors(path)
        result = change(header, body)
        header, body = result if result is not None else (header, body)
        write_safetensors(path, header, body)
    return apply


def rename(header, body):
    header["encoder.layer.0.attention.self.qwery.weight"] = header.pop(WEIGHT)


def reshape(header, body):
    header[WEIGHT]["shape"] = [8, 32]


def other_dtype(header, body):
    # The number of bytes stays the same, so that only the type is wrong.
    header[WEIGHT].update(dtype="F64", shape=[16, 8])


def integers(header, body):
    header[WEIGHT]["dtype"] = "I32"


def unknown_dtype(header, body):
    header[WEIGHT]["dtype"] = "F33"


def overlap(header, body):
    names = [n for n in header if n != "__metadata__"]
    a = header[WEIGHT]
    b = next(header[n] for n in names if n != WEIGHT and header[n]["shape"] == a["shape"])
    b["data_offsets"] = list(a["data_offsets"])


def beyond_the_end(header, body):
    header[WEIGHT]["data_offsets"] = [len(body) + 1024 - 16 * 16 * 4, len(body) + 1024]


def backwards(header, body):
    header[WEIGHT]["data_offsets"].reverse()


def size_mismatch(header, body):
    header[WEIGHT]["data_offsets"][1] -= 4


def huge_shape(header, body):
    header[WEIGHT]["shape"] = [2**40, 2**40]


def negative_shape(header, body):
    header[WEIGHT]["shape"] = [-16, -16]


def fractional_shape(header, body):
    header[WEIGHT]["shape"] = [16.5, 16]


def wrong_kind(header, body):
    header[WEIGHT] = [1, 2, 3]


def no_offsets(header, body):
    del header[WEIGHT]["data_offsets"]


DAMAGE = {
    "empty": lambda p: p.write_bytes(b""),
    "shorter-than-its-length-field": lambda p: p.write_bytes(b"\x10\0\0"),
    "truncated-in-header": lambda p: p.write_bytes(p.read_bytes()[:200]),
    "truncated-in-data": lambda p: p.write_bytes(p.read_bytes()[:-1]),
    "truncated-to-half": lambda p: p.write_bytes(p.read_bytes()[:p.stat().st_size // 2]),
    "header-of-2^60-bytes": lambda p: p.write_bytes(struct.pack("<Q", 2**60) + p.read_bytes()[8:]),
    "header-of-2^64-1-bytes": lambda p: p.write_bytes(struct.pack("<Q", 2**64 - 1) + p.read_bytes()[8:]),
    "header-not-json": lambda p: write_safetensors(p, b"{not json at all", b""),
    "header-not-an-object": lambda p: write_safetensors(p, b"[1, 2]", b""),
    "header-nested-deep": lambda p: write_safetensors(p, b'{"a":' + b"[" * 200000 + b"]" * 200000 + b"}", b""),
    "header-not-utf8": lambda p: write_safetensors(p, b'{"\xff\xfe": 1}', b""),
    "text-file": lambda p: p.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 90868376\n"),
    "weight-missing": edit(rename),
    "weight-of-another-shape": edit(reshape),
    "weight-of-another-type": edit(other_dtype),
    "weight-of-integers": edit(integers),
    "unknown-type": edit(unknown_dtype),
    "overlapping-offsets": edit(overlap),
    "offsets-beyond-the-end": edit(beyond_the_end),
    "offsets-backwards": edit(backwards),
    "offsets-do-not-fit-the-shape": edit(size_mismatch),
    "shape-overflows": edit(huge_shape),
    "shape-negative": edit(negative_shape),
    "shape-fractional": edit(fractional_shape),
    "entry-of-a-wrong-kind": edit(wrong_kind),
    "entry-without-offsets": edit(no_offsets),
}
NAMES_THE_WEIGHT = ("weight-missing", "weight-of-another-shape", "weight-of-another-type", "weight-of-integers")


def damaged_copy(damage, directory):
    shutil.copytree(TINY, directory)
    DAMAGE[damage](directory / "model.safetensors")
    return directory


@pytest.mark.parametrize("damage", DAMAGE)
def test_import_refuses(damage, tmp_path):
    checkpoint = damaged_copy(damage, tmp_path / "checkpoint")
    names = ["error", re.escape(WEIGHT) if damage in NAMES_THE_WEIGHT else r"model\.safetensors"]
    refused("braid", "import", checkpoint, "--batch", 2, "--seq", 7, "-o", tmp_path / "m.mlir", names=names, absent=[tmp_path / "m.mlir"])


@pytest.mark.parametrize("damage", DAMAGE)
def test_braid_run_refuses_weights(damage, tiny, tmp_path):
    checkpoint = damaged_copy(damage, tmp_path / "checkpoint")
    names = ["error", re.escape(WEIGHT) if damage in NAMES_THE_WEIGHT else r"model\.safetensors"]
    refused("braid-run", tiny.bundle("tp=2"), "--ranks", 2, "--weights", checkpoint, *braidtest.input_args(tiny.inputs),
            "--output", tmp_path / "out", names=names)
    nothing_in(tmp_path / "out")


@pytest.mark.parametrize("damage", ["truncated-in-data", "weight-missing", "weight-of-another-shape"])
def test_interpreter_refuses_weights(damage, tiny, tmp_path):
    checkpoint = damaged_copy(damage, tmp_path / "checkpoint")
    names = ["error", re.escape(WEIGHT) if damage in NAMES_THE_WEIGHT else r"model\.safetensors"]
    refused("braid", "run", tiny.model, "--mesh", "tp=2", "--ranks", 2, "--target", "reference", "--weights", checkpoint,
            *braidtest.input_args(tiny.inputs), "--output", tmp_path / "out", names=names)
    nothing_in(tmp_path / "out")


# --- config.json -------------------------------------------------------------------------------------------------

CONFIGS = {
    "no-hidden-size": (lambda c: c.pop("hidden_size"), "hidden_size"),
    "no-heads": (lambda c: c.pop("num_attention_heads"), "num_attention_heads"),
    "no-layers": (lambda c: c.pop("num_hidden_layers"), "num_hidden_layers"),
    "no-intermediate-size": (lambda c: c.pop("intermediate_size"), "intermediate_size"),
    "no-vocabulary": (lambda c: c.pop("vocab_size"), "vocab_size"),
    "heads-do-not-divide": (lambda c: c.update(num_attention_heads=3), "num_attention_heads|hidden_size"),
    "zero-heads": (lambda c: c.update(num_attention_heads=0), "num_attention_heads"),
    "negative-layers": (lambda c: c.update(num_hidden_layers=-1), "num_hidden_layers"),
    "a-string-for-a-number": (lambda c: c.update(hidden_size="16"), "hidden_size"),
    "a-fraction": (lambda c: c.update(hidden_size=16.5), "hidden_size"),
    "beyond-64-bits": (lambda c: c.update(vocab_size=2**70), "vocab_size"),
    "more-layers-than-the-checkpoint": (lambda c: c.update(num_hidden_layers=2), r"encoder\.layer\.1"),
    "another-width": (lambda c: c.update(hidden_size=32), r"embeddings\.word_embeddings\.weight|hidden_size"),
    "another-vocabulary": (lambda c: c.update(vocab_size=30), r"embeddings\.word_embeddings\.weight|vocab_size"),
    "unknown-model": (lambda c: c.update(model_type="gpt_neox_japanese"), "gpt_neox_japanese"),
    "no-model-type": (lambda c: c.pop("model_type"), "model_type"),
    "unknown-activation": (lambda c: c.update(hidden_act="swoosh"), "swoosh"),
    "relative-positions": (lambda c: c.update(position_embedding_type="relative_key"), "relative_key"),
    "a-decoder": (lambda c: c.update(is_decoder=True), "is_decoder"),
    "eps-of-a-wrong-kind": (lambda c: c.update(layer_norm_eps="tiny"), "layer_norm_eps"),
}


@pytest.mark.parametrize("change", CONFIGS)
def test_import_refuses_config(change, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(TINY, checkpoint)
    config = models.read_config(TINY)
    apply, name = CONFIGS[change]
    apply(config)
    (checkpoint / "config.json").write_text(json.dumps(config))
    refused("braid", "import", checkpoint, "--batch", 2, "--seq", 7, "-o", tmp_path / "m.mlir", names=["error", name],
            absent=[tmp_path / "m.mlir"])


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"a": 1} x', "\x00\x01"])
def test_import_refuses_config_text(text, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(TINY, checkpoint)
    (checkpoint / "config.json").write_text(text)
    refused("braid", "import", checkpoint, "-o", tmp_path / "m.mlir", names=["error", r"config\.json"],
            absent=[tmp_path / "m.mlir"])


@pytest.mark.parametrize("arguments,name", [
    (["--batch", 0], "batch"), (["--batch", -2], "batch"), (["--batch", "two"], "batch"), (["--seq", 0], "seq"),
    (["--seq", 13], "13.*12|12.*13|max_position_embeddings"), (["--layers", 0], "layers"), (["--layers", 2], "layer"),
    (["--dtype", "bf16"], "bf16"), (["--dtype", "f16"], "f16"), (["--dtype", "f33"], "f33"), (["--no-such-option"], "no-such-option"),
], ids=str)
def test_import_refuses_arguments(arguments, name, tmp_path):
    if "--seq" not in arguments:
        arguments = [*arguments, "--seq", 7]
    refused("braid", "import", TINY, *arguments, "-o", tmp_path / "m.mlir", names=[name], absent=[tmp_path / "m.mlir"])


def test_import_refuses_a_directory_without_checkpoint(tmp_path):
    (tmp_path / "empty").mkdir()
    refused("braid", "import", tmp_path / "empty", "-o", tmp_path / "m.mlir", names=[r"config\.json|empty"])
    refused("braid", "import", tmp_path / "nowhere", "-o", tmp_path / "m.mlir", names=["nowhere"])
    shutil.copy(TINY / "config.json", tmp_path / "empty")
    nothing_in(tmp_path / "nowhere")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty"]


# --- meshes ------------------------------------------------------------------------------------------------------


def test_mesh_does_not_match_ranks(tiny, tmp_path):
    for ranks in (1, 3, 4):
        refused("braid", "run", tiny.model, "--mesh", "tp=2", "--ranks", ranks, "--target", "reference", *tiny.run_args(),
                "--output", tmp_path / "out", names=["error", "2", str(ranks), "rank"])
        refused("braid-run", tiny.bundle("tp=2"), "--ranks", ranks, *tiny.run_args(), "--output", tmp_path / "out",
                names=["error", "2", str(ranks), "rank"])
    nothing_in(tmp_path / "out")


@pytest.mark.parametrize("mesh", ["zz=2", "tp", "tp=", "tp=0", "tp=-1", "tp=x", "tp=2,tp=2", "=2", "tp=2,", "tp=99999999999999999999",
                                  "dp=65536,tp=65536"])
def test_mesh_that_is_none(mesh, tiny, tmp_path):
    refused("braid", "compile", tiny.model, "--mesh", mesh, "--target", "cpu", "-o", tmp_path / "x.braid",
            names=["error"], absent=[tmp_path / "x.braid"])


def test_unknown_axis_is_named(tiny, tmp_path):
    refused("braid", "compile", tiny.model, "--mesh", "zz=2", "--target", "cpu", "-o", tmp_path / "x.braid", names=["zz"])


# --- IR of another level -----------------------------------------------------------------------------------------


def emit(case, level, path):
    braid("compile", case.model, "--mesh", "tp=2", "--target", "cpu", f"--emit={level}", "-o", path)
    return path


def test_compile_refuses_a_later_level(tiny, tmp_path):
    later = emit(tiny, "llvm", tmp_path / "llvm.mlir")
    refused("braid", "compile", later, "--mesh", "tp=2", "--target", "cpu", "-o", tmp_path / "x.braid", names=["error"],
            absent=[tmp_path / "x.braid"])


@pytest.mark.parametrize("level", ["rt", "llvm"])
def test_memory_has_no_values_to_interpret(level, tiny, tmp_path):
    later = emit(tiny, level, tmp_path / f"{level}.mlir")
    refused("braid", "run", later, "--mesh", "tp=2", "--ranks", 2, "--target", "reference", *tiny.run_args(), names=["error"])


@pytest.mark.parametrize("text,name", [
    ("", "error"), ("this is no mlir", "error"), ("module {", "error"), ("module {}", "error"),
    ("module { func.func @f() { return } }", "error"), ("module { nosuch.op }", "nosuch"),
], ids=["empty", "prose", "unfinished", "empty-module", "no-entry", "unknown-dialect"])
def test_compile_refuses_text(text, name, tmp_path):
    (tmp_path / "m.mlir").write_text(text)
    refused("braid", "compile", tmp_path / "m.mlir", "--mesh", "tp=2", "--target", "cpu", "-o", tmp_path / "x.braid", names=[name],
            absent=[tmp_path / "x.braid"])


def test_model_is_no_bundle(tiny):
    refused("braid-run", tiny.model, "--ranks", 1, *tiny.run_args(), names=["error", r"model\.mlir"])


def test_unknown_target_and_level(tiny, tmp_path):
    out = tmp_path / "x.braid"
    refused("braid", "compile", tiny.model, "--target", "abacus", "-o", out, names=["abacus"], absent=[out])
    refused("braid", "compile", tiny.model, "--target", "cpu", "--emit=poetry", "-o", out, names=["poetry"], absent=[out])
    refused("braid", "run", tiny.model, "--ranks", 1, "--target", "abacus", *tiny.run_args(), names=["abacus"])
    refused("braid-run", tiny.bundle("tp=1"), "--ranks", 1, "--transport", "pigeon", *tiny.run_args(), names=["pigeon"])


# --- bundles -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fraction", [0, 0.001, 0.25, 0.5, 0.9, 0.999])
def test_truncated_bundle(fraction, tiny, tmp_path):
    data = tiny.bundle("tp=2").read_bytes()
    (tmp_path / "cut.braid").write_bytes(data[:int(len(data) * fraction)])
    refused("braid-run", tmp_path / "cut.braid", "--ranks", 2, *tiny.run_args(), "--output", tmp_path / "out",
            names=["error", r"cut\.braid"])
    nothing_in(tmp_path / "out")


def test_one_byte_of_each_member_flipped(tiny, tmp_path):
    """A checksum covers each member: the archive's covers the manifest, and the manifest's also cover the others."""
    good = tiny.bundle("tp=2").read_bytes()
    with zipfile.ZipFile(tiny.bundle("tp=2")) as archive:
        members = archive.infolist()
        assert len(members) >= 3
        assert all(m.compress_type == zipfile.ZIP_STORED for m in members)
    for i, member in enumerate(members):
        name_length, extra_length = struct.unpack_from("<HH", good, member.header_offset + 26)
        begin = member.header_offset + 30 + name_length + extra_length
        assert begin % 64 == 0, f"{member.filename} starts at {begin}, which is not aligned"
        for at in (begin, begin + member.file_size // 2, begin + member.file_size - 1):
            bad = bytearray(good)
            bad[at] ^= 0x20
            path = tmp_path / f"flipped{i}.braid"
            path.write_bytes(bad)
            refused("braid-run", path, "--ranks", 2, *tiny.run_args(), names=["error", rf"flipped{i}\.braid"])


def rewritten(case, path, change):
    """Writes a bundle with changed members in an intact archive, so that only the bundle's own checks can detect the
    change."""
    with zipfile.ZipFile(case.bundle("tp=2")) as archive:
        members = {m.filename: archive.read(m) for m in archive.infolist()}
    change(members)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_members_changed_or_gone(tiny, tmp_path):
    names = zipfile.ZipFile(tiny.bundle("tp=2")).namelist()
    assert names.count("manifest.json") == 1
    # The manifest has the other members' checksums, but only the archive has one for the manifest.
    for i, name in enumerate(n for n in names if n != "manifest.json"):
        def flip(members):
            data = bytearray(members[name])
            data[len(data) // 2] ^= 1
            members[name] = bytes(data)
        refused("braid-run", rewritten(tiny, tmp_path / f"changed{i}.braid", flip), "--ranks", 2, *tiny.run_args(),
                names=["error", rf"changed{i}\.braid"])
    refused("braid-run", rewritten(tiny, tmp_path / "gone.braid", lambda m: m.pop("manifest.json")), "--ranks", 2,
            *tiny.run_args(), names=["error", r"gone\.braid", "manifest"])


def test_not_a_bundle(tiny, tmp_path):
    (tmp_path / "text.braid").write_text("hello\n" * 100)
    with zipfile.ZipFile(tmp_path / "zip.braid", "w") as archive:
        archive.writestr("readme.txt", "nothing of ours")
    for path in (tmp_path / "text.braid", tmp_path / "zip.braid", tmp_path, tmp_path / "nowhere.braid"):
        refused("braid-run", path, "--ranks", 2, *tiny.run_args(), names=["error", re.escape(path.name)])


# --- inputs ------------------------------------------------------------------------------------------------------


# Only a rank that looks a value up can check it: the run starts, and that rank ends it.
FOUND_BY_A_RANK = {"beyond-the-vocabulary", "negative", "beyond-the-types"}


@pytest.mark.parametrize("make,names", [
    (lambda d: d.pop("input_ids"), ["input_ids"]),
    (lambda d: d.update(inputs_embeds=np.zeros((2, 7, 16), np.float32)), ["inputs_embeds"]),
    (lambda d: d.update(input_ids=d["input_ids"][:, :6]), ["input_ids", "6", "7"]),
    (lambda d: d.update(input_ids=d["input_ids"][0]), ["input_ids"]),
    (lambda d: d.update(input_ids=d["input_ids"].astype(np.float32)), ["input_ids"]),
    (lambda d: d["input_ids"].__setitem__((1, 2), 31), ["31"]),
    (lambda d: d["input_ids"].__setitem__((0, 0), -1), ["-1"]),
    (lambda d: d["token_type_ids"].__setitem__((0, 0), 2), ["2"]),
], ids=["missing", "unknown", "another-length", "another-rank", "floats", "beyond-the-vocabulary", "negative", "beyond-the-types"])
@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_inputs_refused(make, names, target, tiny, tmp_path, request):
    values = {name: value.copy() for name, value in tiny.values.items()}
    make(values)
    args = ["--weights", tiny.checkpoint, *braidtest.input_args(models.write_inputs(values, tmp_path / "in")),
            "--output", tmp_path / "out", "--ranks", 2]
    if target == "reference":
        refused("braid", "run", tiny.model, "--mesh", "tp=2", "--target", "reference", *args, names=["error", *names])
    else:
        by_rank = any(case in request.node.callspec.id for case in FOUND_BY_A_RANK)
        refused("braid-run", tiny.bundle("tp=2"), *args, names=["error", *names, *(["rank", "embedding"] if by_rank else [])])
    nothing_in(tmp_path / "out")


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00\xff\xff{", b"plain text", b"\x93NUMPY\x03\x00\xff\xff\xff\xff{}"], ids=[str(i) for i in range(5)])
def test_npy_that_is_none(content, tiny, tmp_path):
    (tmp_path / "bad.npy").write_bytes(content)
    inputs = {**tiny.inputs, "input_ids": tmp_path / "bad.npy"}
    refused("braid-run", tiny.bundle("tp=2"), "--ranks", 2, "--weights", tiny.checkpoint, *braidtest.input_args(inputs),
            names=["error", r"bad\.npy"])
    refused("braid-run", tiny.bundle("tp=2"), "--ranks", 2, *tiny.run_args(), "--check", tmp_path / "bad.npy",
            names=["error", r"bad\.npy"])


def test_npy_truncated(tiny, tmp_path):
    good = tiny.inputs["input_ids"].read_bytes()
    (tmp_path / "bad.npy").write_bytes(good[:-8])
    refused("braid-run", tiny.bundle("tp=2"), "--ranks", 2, "--weights", tiny.checkpoint,
            *braidtest.input_args({**tiny.inputs, "input_ids": tmp_path / "bad.npy"}), names=["error", r"bad\.npy"])


def test_golden_of_another_shape(tiny, tmp_path):
    np.save(tmp_path / "golden.npy", tiny.golden_value[:, :-1])
    refused("braid-run", tiny.bundle("tp=2"), "--ranks", 2, *tiny.run_args(), "--check", tmp_path / "golden.npy",
            names=["error", "golden"])


def test_golden_with_nan_is_not_passed(tiny, tmp_path):
    golden = tiny.golden_value.copy()
    golden[0, 0, 0] = np.nan
    np.save(tmp_path / "golden.npy", golden)
    code = braidtest.CHECK_FAILED
    braidtest.run("braid-run", tiny.bundle("tp=2"), "--ranks", 2, *tiny.run_args(), "--check", tmp_path / "golden.npy", expect=code)


@pytest.mark.parametrize("args", [
    ["--ranks", "0"], ["--ranks", "-1"], ["--ranks", "two"], ["--ranks", "2", "--threads", "0"], ["--ranks", "2", "--repeat", "0"],
    ["--ranks", "2", "--tolerance", "-1"], ["--ranks", "2", "--tolerance", "nan"], ["--ranks", "2", "--no-such-option"],
    ["--ranks", "2", "--input", "input_ids"], ["--ranks", "2", "--random-weights", "x"], ["--ranks", "2", "--time-limit", "-3"],
], ids=" ".join)
def test_arguments_refused(args, tiny):
    refused("braid-run", tiny.bundle("tp=2"), *args, *tiny.run_args(), names=[re.escape(args[-1]) + "|" + re.escape(args[-2].lstrip("-"))])


def test_negative_seed(tiny):
    refused("braid-run", tiny.bundle("tp=2"), *braidtest.input_args(tiny.inputs), "--random-weights", "-1",
            names=["--random-weights: expects a whole number of at least 0, got -1"])


def test_no_weights(tiny):
    refused("braid-run", tiny.bundle("tp=2"), "--ranks", 2, *braidtest.input_args(tiny.inputs), names=["error", "weights"])


# --- paths that cannot be written --------------------------------------------------------------------------------


def unwritable(tmp_path):
    """Paths that not even root can write."""
    (tmp_path / "file").write_text("in the way")
    return [tmp_path / "no" / "such" / "directory", tmp_path / "file"]


def test_results_cannot_be_written(tiny, tmp_path):
    for place in unwritable(tmp_path):
        missing = [place / "x"] if place.name != "file" else []
        refused("braid", "import", TINY, "--batch", 2, "--seq", 7, "-o", place / "x", names=["error", "x"], absent=missing)
        refused("braid", "compile", tiny.model, "--mesh", "tp=2", "--target", "cpu", "-o", place / "x", names=["error", "x"])
        for option in ("--trace", "--report"):
            refused("braid-run", tiny.bundle("tp=2"), "--ranks", 2, *tiny.run_args(), option, place / "x", names=["error", "x"])
    refused("braid-run", tiny.bundle("tp=2"), "--ranks", 2, *tiny.run_args(), "--output", tmp_path / "file" / "out", names=["error", "out"])
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_full_disk_leaves_nothing(tiny):
    refused("braid", "compile", tiny.model, "--mesh", "tp=2", "--target", "cpu", "-o", "/dev/full", names=["error", "/dev/full"])


def test_what_was_there_survives_a_failure(tiny, tmp_path):
    """A failed command does not destroy the file that it would replace."""
    out = tmp_path / "x.braid"
    out.write_text("an older result")
    refused("braid", "compile", tiny.model, "--mesh", "dp=2", "--strategy", "tp", "--target", "cpu", "-o", out)
    assert out.read_text() == "an older result"
    assert [p.name for p in tmp_path.iterdir()] == ["x.braid"]
