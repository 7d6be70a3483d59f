"""A compiled model runs on numpy arrays, and what it does wrong to memory does not go unnoticed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mccompile.base.dtypes import DTYPES, of_array
from mccompile.base.errors import BadFile, CheckFailed, MccError, WrongUse
from mccompile.toolchain.build import DEFAULT_FLAGS
from mccompile.toolchain.elements import descriptors, from_bytes, read_strings, to_bytes
from mccompile.toolchain.run import Model

INPUTS = {"a": np.array([[1, 2], [3, 4]], np.float32), "b:0": np.array([10, 20, 30, 40], np.float32)}


def _what(error: pytest.ExceptionInfo[Any]) -> list[str]:
    assert isinstance(error.value, MccError)
    return [problem.what for problem in error.value.problems]


@pytest.mark.parametrize("cc", [name for name in ("gcc", "clang", "tcc") if shutil.which(name)] or [None])
def test_outputs_by_name(adder: Path, cc: str | None) -> None:
    outputs = Model.build(adder, cc).run(INPUTS)
    np.testing.assert_array_equal(outputs["y"], np.array([[111, 222], [333, 444]], np.float32))
    assert (outputs["n"].dtype, outputs["n"].shape, outputs["n"]) == (np.int64, (), 1)


def test_state_lasts_until_the_model_is_initialised_anew(adder: Path) -> None:
    model = Model.build(adder)
    assert [int(model.run(INPUTS, poison)["n"]) for poison in (None, None, 0xFF, None)] == [1, 2, 1, 2]


def test_two_models_do_not_disturb_each_other(adder: Path) -> None:
    first, second = Model.build(adder), Model.build(adder)
    first.run(INPUTS)
    second_inputs = {name: value * 2 for name, value in INPUTS.items()}
    y = second.run(second_inputs)["y"]
    assert int(first.run(INPUTS)["n"]) == 2
    np.testing.assert_array_equal(y, np.array([[122, 244], [366, 488]], np.float32))


def test_a_strided_input_is_copied_element_by_element(adder: Path) -> None:
    strided = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.float32)[:, ::2]
    y = Model.build(adder).run({**INPUTS, "a": strided})["y"]
    np.testing.assert_array_equal(y, np.array([[111, 223], [335, 447]], np.float32))


def test_all_wrong_inputs_are_named_at_once(adder: Path) -> None:
    with pytest.raises(WrongUse) as error:
        Model.build(adder).run({"a": np.zeros((4, 1), np.float32), "c": np.zeros(4, np.float32)})
    assert _what(error) == ["there is no input 'c'", "input 'a' does not fit", "input 'b:0' is missing"]


def test_an_input_of_another_type_is_refused(adder: Path) -> None:
    with pytest.raises(WrongUse, match=r"float64\[2,2\]"):
        Model.build(adder).run({**INPUTS, "a": INPUTS["a"].astype(np.float64)})


def test_writing_past_the_arena_is_noticed(adder: Path) -> None:
    model = Model.build(adder, flags=(*DEFAULT_FLAGS, "-DBREAK_ARENA"))
    with pytest.raises(CheckFailed, match=r"(?s)outside its memory.*the arena.*1 bytes changed, up to 3 past its end"):
        model.run(INPUTS)


def test_changing_the_weights_is_noticed(adder: Path) -> None:
    model = Model.build(adder, flags=(*DEFAULT_FLAGS, "-DBREAK_WEIGHTS"))
    with pytest.raises(CheckFailed) as error:
        model.run(INPUTS)
    assert _what(error) == ["adder_run changed its weights"]


def test_a_status_is_told_in_words(adder: Path) -> None:
    model = Model.build(adder, flags=(*DEFAULT_FLAGS, "-DFAIL_RUN"))
    with pytest.raises(CheckFailed, match="adder_run failed"):
        model.run(INPUTS)


def test_a_damaged_blob_is_refused(adder: Path) -> None:
    blob = bytearray((adder / "adder.mcb").read_bytes())
    blob[-1] ^= 1
    (adder / "adder.mcb").write_bytes(blob)
    with pytest.raises(CheckFailed, match="the blob is damaged"):
        Model.build(adder)


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("prefix", None, "report.json has no 'prefix'"),
        ("inputs", [{"name": "a"}], "report.json has no 'dtype'"),
        ("inputs", 7, "not iterable"),
        ("arena_bytes", "many", "invalid literal"),
        (
            "inputs",
            [{"name": "a", "symbol": "a", "dtype": "f32", "shape": [2], "bytes": 9}],
            "9 bytes do not hold f32[2]",
        ),
    ],
)
def test_an_odd_report_is_a_bad_file(adder: Path, key: str, value: object, why: str) -> None:
    report = json.loads((adder / "report.json").read_text())
    if value is None:
        del report[key]
    else:
        report[key] = value
    (adder / "report.json").write_text(json.dumps(report))
    with pytest.raises(BadFile) as error:
        Model.build(adder)
    assert why in error.value.problems[0].why


@pytest.mark.parametrize("file", ["report.json", "adder.mcb"])
def test_a_folder_without_its_files_is_refused(adder: Path, file: str) -> None:
    (adder / file).unlink()
    with pytest.raises(BadFile, match=file):
        Model.build(adder)


def test_strings_lie_in_memory_as_pointers_and_lengths() -> None:
    texts = ["ab", "", "ünï"]
    encoded = [text.encode() for text in texts]
    content, end = descriptors(encoded, 1000)
    memory = b"".join(encoded)
    read = read_strings(content, lambda address, size: memory[address - 1000 : address - 1000 + size])
    assert (read.tolist(), end) == (texts, 1000 + len(memory))


@pytest.mark.parametrize(
    ("array", "content"),
    [
        (np.array([-8, 7, -1], ml_dtypes.int4), b"\x78\x0f"),
        (np.array([15, 1, 2], ml_dtypes.uint4), b"\x1f\x02"),
        (np.array([-2, 1, -1, 0, 1], ml_dtypes.int2), b"\x36\x01"),
        (np.array([3, 0, 1, 2, 1], ml_dtypes.uint2), b"\x93\x01"),
        (np.array([0.5, -6, 1], ml_dtypes.float4_e2m1fn), b"\xf1\x02"),
        (np.array([1.0, -2.0], ml_dtypes.bfloat16), b"\x80\x3f\x00\xc0"),
        (np.array([[1.0], [-2.0]], np.float16), b"\x00\x3c\x00\xc0"),
        (np.array([True, False]), b"\x01\x00"),
        (np.zeros((0, 3), np.float32), b""),
        (np.zeros(0, ml_dtypes.int4), b""),
    ],
    ids=lambda value: value.dtype.name if isinstance(value, np.ndarray) else "",
)
def test_elements_as_they_lie_in_memory(array: np.ndarray, content: bytes) -> None:
    dtype = of_array(array)
    assert to_bytes(array, dtype) == content
    back = from_bytes(content, dtype, array.shape)
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


def test_every_packed_type_is_tested() -> None:
    assert {name for name, dtype in DTYPES.items() if dtype.is_packed} == {"i4", "u4", "i2", "u2", "f4e2m1"}
