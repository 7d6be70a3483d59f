"""`mccompile blob --from`: what a device saved becomes an ONNX file or a blob; anything else is refused."""

from __future__ import annotations

import json
import shutil
import struct
import tempfile
import tracemalloc
import zlib
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from mccompile.base.errors import BadFile, Exit
from mccompile.cli import run
from mccompile.frontend.saved_weights import saved_weights
from tests.cli.test_train import built_and_run
from tests.flash import SLOTS
from tests.passes.learn.quantized_net import quantized_net
from tests.python.test_trainer import network

# Saves 1, 2, ... SAVES, and writes both slots.
PROGRAM = """
#include <stdio.h>
#include <string.h>
#include "net.h"
static MCC_ALIGNED(NET_ARENA_ALIGN) uint8_t arena[NET_ARENA_BYTES];
FLASH
int main(void)
{
    net_model m;
    power = 1000000;
    memset(flash, 0xFF, sizeof flash);
    if (net_init(&m, arena, sizeof arena, net_weights, net_weights_bytes) != MCC_OK) return 1;
    for (int save = 1; save <= SAVES; ++save) {
        net_state_w2(&m)[5] = (float)save;
        net_state_b1(&m)[2] = 10.0f + (float)save;
        if (net_save(&m, &store) != MCC_OK) return 2;
    }
    FILE *file = fopen("SAVED", "wb");
    return file != NULL && fwrite(flash, 1, sizeof flash, file) == sizeof flash && fclose(file) == 0 ? 0 : 3;
}
""".replace("FLASH", SLOTS)


def trained(folder: Path, name: str = "out", *more: str, seed: int = 0) -> Path:
    """Code that learns, and its model beside it; both are made once for all tests that ask for the same."""
    model, out = made_once(more, seed)
    shutil.copy(model, folder)
    return Path(shutil.copytree(out, folder / name))


@cache
def made_once(more: tuple[str, ...], seed: int) -> tuple[Path, Path]:
    folder = Path(tempfile.mkdtemp(dir=kept().name))
    model = network()
    draw = np.random.default_rng(seed)
    for tensor in model.graph.initializer:
        moved = numpy_helper.to_array(tensor) + np.float32(seed * draw.random())
        tensor.CopyFrom(numpy_helper.from_array(moved, tensor.name))
    file = folder / f"net{seed or ''}.onnx"
    onnx.save(model, file)
    words = ["train", str(file), "-o", str(folder / "out"), "--loss", "cross_entropy:p", "--name", "net"]
    assert run([*words, *(more or ["--learn", "all"])]) == 0
    return file, folder / "out"


@cache
def kept() -> tempfile.TemporaryDirectory[str]:
    """As long as the process."""
    return tempfile.TemporaryDirectory(prefix="saved-weights-")


def slot(out: Path, weights: dict[str, np.ndarray], sequence: int = 1) -> bytes:
    """As <model>_save writes it."""
    report = json.loads((out / "report.json").read_text())
    contents = b"".join(np.asarray(weights[name], np.float32).tobytes() for name in report["stored"])
    identity = bytes.fromhex(report["identity"])
    head = struct.pack("<4sIII16s", b"MCCL", sequence, len(contents), zlib.crc32(contents), identity)
    return (head + struct.pack("<I", zlib.crc32(head))).ljust(64, b"\xff") + contents


def initializers(model: Path) -> dict[str, np.ndarray]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(model).graph.initializer}


def blob(model: Path, out: Path, *more: object) -> int:
    return run(["blob", str(model), "--for", str(out), *map(str, more)])


@pytest.mark.parametrize(("saves", "optimizer"), [(1, "sgd"), (2, "adam"), (5, "sgd")])
def test_what_a_device_saved_last_becomes_a_model(tmp_path: Path, saves: int, optimizer: str) -> None:
    out = trained(tmp_path, "out", "--learn", "all", "--optimizer", optimizer, "--save", "optimizer")
    program = PROGRAM.replace("SAVES", str(saves)).replace("SAVED", (tmp_path / "saved.bin").as_posix())
    assert built_and_run(Path(shutil.copytree(out, tmp_path / "built")), program) == 0
    assert blob(tmp_path / "net.onnx", out, "--from", tmp_path / "saved.bin", "-o", tmp_path / "learned.onnx") == 0
    before, after = initializers(tmp_path / "net.onnx"), initializers(tmp_path / "learned.onnx")
    before["w2"] = before["w2"].copy()
    before["b1"] = before["b1"].copy()
    before["w2"].flat[5], before["b1"][2] = saves, 10 + saves
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert blob(tmp_path / "net.onnx", out, "--from", tmp_path / "saved.bin") == 0
    begin = (out / "net.mcb").read_bytes()
    assert before["w2"].tobytes() in begin
    assert before["b1"].tobytes() in begin
    assert blob(tmp_path / "net.onnx", out) == 0
    assert (out / "net.mcb").read_bytes() != begin
    assert blob(tmp_path / "learned.onnx", out) == 0  # the server's file is for the code of all devices
    assert (out / "net.mcb").read_bytes() == begin


def test_saves_are_ordered_where_their_number_begins_anew(tmp_path: Path) -> None:
    out = trained(tmp_path)
    weights = initializers(tmp_path / "net.onnx")
    slots = [slot(out, {**weights, "b2": np.full(3, n)}, n % 2**32) for n in (2**32 - 1, 2**32)]
    for order in (slots, slots[::-1]):
        (tmp_path / "saved.bin").write_bytes(b"\0" * 7 + (b"\xff" * 13).join(order))
        assert blob(tmp_path / "net.onnx", out, "--from", tmp_path / "saved.bin", "-o", tmp_path / "new.onnx") == 0
        assert initializers(tmp_path / "new.onnx")["b2"].tolist() == [2.0**32] * 3


@pytest.mark.parametrize("at", [0, 5, 12, 40, -1])
def test_a_damaged_save_is_never_taken(tmp_path: Path, at: int, capsys: pytest.CaptureFixture[str]) -> None:
    out = trained(tmp_path)
    weights = initializers(tmp_path / "net.onnx")
    newest = bytearray(slot(out, {**weights, "b2": np.ones(3)}, 2))
    if at != 40:  # which nothing reads
        newest[at] ^= 1
    (tmp_path / "saved.bin").write_bytes(newest[: len(newest) - (at == 40)])
    assert (
        blob(tmp_path / "net.onnx", out, "--from", tmp_path / "saved.bin", "-o", tmp_path / "new.onnx") == Exit.BAD_FILE
    )
    assert "saved.bin" in capsys.readouterr().err
    assert not (tmp_path / "new.onnx").exists()
    (tmp_path / "saved.bin").write_bytes(slot(out, {**weights, "b2": np.zeros(3)}, 1) + bytes(newest))
    assert blob(tmp_path / "net.onnx", out, "--from", tmp_path / "saved.bin", "-o", tmp_path / "new.onnx") == 0


@pytest.mark.parametrize(
    ("damaged", "order", "said"),
    [
        (-1, 1, "save 2, at byte 164, is newer but damaged; save 1 is taken, at byte 0"),
        (70, -1, "save 2, at byte 0, is newer but damaged"),
        (2, 1, "the slot at byte 164 has a damaged header"),  # magic
        (5, 1, "the slot at byte 164 has a damaged header"),  # sequence
        (20, 1, "the slot at byte 164 has a damaged header"),  # identity
        (35, 1, "the slot at byte 164 has a damaged header"),  # checksum
    ],
)
def test_an_older_save_is_taken_in_the_open(
    tmp_path: Path, damaged: int, order: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = trained(tmp_path)
    weights = initializers(tmp_path / "net.onnx")
    older, newer = (slot(out, {**weights, "b2": np.full(3, n)}, n) for n in (1, 2))
    said = said.replace("164", str(len(older)))
    broken = bytearray(newer)
    broken[damaged] ^= 1
    for second, expected in ((newer, 2.0), (bytes(broken), 1.0)):
        (tmp_path / "saved.bin").write_bytes(b"".join((older, second)[::order]))
        assert blob(tmp_path / "net.onnx", out, "--from", tmp_path / "saved.bin", "-o", tmp_path / "new.onnx") == 0
        assert initializers(tmp_path / "new.onnx")["b2"].tolist() == [expected] * 3
        told = capsys.readouterr().err
        assert (said in told) == (expected == 1), told
    (tmp_path / "saved.bin").write_bytes(bytes(broken)[: len(newer)] + newer)
    assert blob(tmp_path / "net.onnx", out, "--from", tmp_path / "saved.bin", "-o", tmp_path / "new.onnx") == 0


@pytest.mark.parametrize("at_once", [True, False])
def test_weights_that_began_equal_come_back(tmp_path: Path, at_once: bool) -> None:
    """As biases do, which begin with zeros."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]> net (float[1, 3] x) => (float[1, 3] p)
        <float[3, 3] w1 = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[3] b1 = {0, 0, 0}, float[3] b2 = {0, 0, 0}>
        { h = Gemm(x, w1, b1) p = Gemm(h, w1, b2) }""")
    onnx.save(model, tmp_path / "net.onnx")
    out = tmp_path / "out"
    words = ["train", str(tmp_path / "net.onnx"), "-o", str(out), "--loss", "mse:p", "--learn", "all"]
    assert run([*words, *["--at-once"] * at_once]) == 0
    learned = {**initializers(tmp_path / "net.onnx"), "b1": np.ones(3), "b2": np.full(3, 2)}
    (tmp_path / "saved.bin").write_bytes(slot(out, learned))
    assert blob(tmp_path / "net.onnx", out, "--from", tmp_path / "saved.bin", "-o", tmp_path / "new.onnx") == 0
    assert initializers(tmp_path / "new.onnx")["b2"].tolist() == [2.0] * 3
    assert blob(tmp_path / "net.onnx", out, "--from", tmp_path / "saved.bin") == 0


def test_a_header_that_says_gigabytes_takes_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = trained(tmp_path)
    whole = slot(out, initializers(tmp_path / "net.onnx"))
    head = whole[:8] + struct.pack("<I", 2**32 - 1) + whole[12:32]
    forged = (head + struct.pack("<I", zlib.crc32(head))).ljust(64, b"\xff") * 50
    report = json.loads((out / "report.json").read_text())
    (tmp_path / "saved.bin").write_bytes(forged)
    tracemalloc.start()
    with pytest.raises(BadFile, match="4294967295 bytes"):
        saved_weights(tmp_path / "saved.bin", report)
    (tmp_path / "saved.bin").write_bytes(forged + whole)
    saved_weights(tmp_path / "saved.bin", report)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_other_files_and_codes_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, other = trained(tmp_path), trained(tmp_path, "other", "--learn", "all", "--optimizer", "momentum")
    model, saved = tmp_path / "net.onnx", tmp_path / "saved.bin"
    saved.write_bytes(slot(other, initializers(model)))
    said = [blob(model, out, "--from", saved)]
    assert "saved by other code" in capsys.readouterr().err
    (tmp_path / "noise.bin").write_bytes(model.read_bytes())
    said.append(blob(model, out, "--from", tmp_path / "noise.bin"))
    assert "no header of a slot" in capsys.readouterr().err
    said.append(blob(model, out, "--from", tmp_path / "none.bin"))
    assert "No such file" in capsys.readouterr().err
    assert run([str(model), "-o", str(tmp_path / "infers")]) == 0
    said.append(blob(model, tmp_path / "infers", "--from", saved))
    assert "saves nothing" in capsys.readouterr().err
    said.append(blob(model, out, "-o", tmp_path / "new.onnx"))
    assert "-o does not go without --from" in capsys.readouterr().err
    said.append(blob(model, out, "--from", saved, "-o", tmp_path / "new.onnx", "--update", tmp_path / "new.mcu"))
    assert "does not go with" in capsys.readouterr().err
    assert said == [Exit.BAD_FILE] * 3 + [Exit.WRONG_USE] * 3


def test_a_blob_for_code_that_learns_is_that_of_the_model_alone(tmp_path: Path) -> None:
    flags = ["--learn", "all", "--optimizer", "adamw,lr=0.002", "--clip", "1", "--accumulate", "2"]
    out, alone = trained(tmp_path, "out", *flags), trained(tmp_path, "alone", *flags, seed=3)
    assert (out / "net.mcb").read_bytes() != (alone / "net.mcb").read_bytes()
    assert blob(tmp_path / "net3.onnx", out) == 0
    assert (out / "net.mcb").read_bytes() == (alone / "net.mcb").read_bytes()


@pytest.mark.parametrize("learn", ["last:1", "all"])
def test_weights_of_a_quantized_network_come_back(
    tmp_path: Path, learn: str, capsys: pytest.CaptureFixture[str]
) -> None:
    quantized = tmp_path / "net.onnx"
    onnx.save(quantized_net(), quantized)
    out = tmp_path / "out"
    assert run(["train", str(quantized), "-o", str(out), "--loss", "cross_entropy:p", "--learn", learn]) == 0
    states = {state["name"]: state for state in json.loads((out / "report.json").read_text())["states"]}
    stored = json.loads((out / "report.json").read_text())["stored"]
    learned = {name: np.full(states[name]["shape"], 0.25 + n, np.float32) for n, name in enumerate(stored)}
    (tmp_path / "saved.bin").write_bytes(slot(out, learned))
    assert blob(quantized, out, "--from", tmp_path / "saved.bin", "-o", tmp_path / "learned.onnx") == 0
    found = initializers(tmp_path / "learned.onnx")
    assert all(np.array_equal(found[name], learned[name]) for name in learned)
    assert blob(quantized, out, "--from", tmp_path / "saved.bin") == 0
    assert all(array.tobytes() in (out / "net.mcb").read_bytes() for array in learned.values())
    of_device = (out / "net.mcb").read_bytes()
    assert blob(quantized, out) == 0
    assert (out / "net.mcb").read_bytes() != of_device
    assert blob(quantized, out, "--from", tmp_path / "learned.onnx") == 0  # alone it is another network: of floats
    assert (out / "net.mcb").read_bytes() == of_device
    assert blob(quantized, out, "--from", quantized) == Exit.BAD_FILE
    assert "lacks a weight" in capsys.readouterr().err


def test_an_initializer_whose_file_is_gone_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, mean = trained(tmp_path), tmp_path / "mean.onnx"
    onnx.save(onnx.load(tmp_path / "net.onnx"), mean, save_as_external_data=True, location="w.bin", size_threshold=0)
    assert blob(tmp_path / "net.onnx", out, "--from", mean) == 0
    (tmp_path / "w.bin").unlink()
    assert blob(tmp_path / "net.onnx", out, "--from", mean) == Exit.BAD_FILE
    assert "its data lies in 'w.bin', which does not exist" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [("--from", "saved.bin", "-o"), ("--update",)])
def test_what_the_command_reads_is_not_written_over(tmp_path: Path, flags: tuple[str, ...]) -> None:
    out, model = trained(tmp_path), tmp_path / "net.onnx"
    before = model.read_bytes()
    (tmp_path / "saved.bin").write_bytes(slot(out, initializers(model)))
    words = [tmp_path / flag if flag.endswith(".bin") else flag for flag in flags]
    assert blob(model, out, *words, model) == Exit.WRONG_USE
    assert model.read_bytes() == before
