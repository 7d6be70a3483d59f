"""Checking models whose inputs and outputs are sequences or optional values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from mccompile.driver import Options
from mccompile.measure.correctness import check

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (seq(float[n,3]) s, float[2,3] x, optional(float[2]) o) => (seq(float[n,3]) t, int64 length, bool there) {
    t = SequenceInsert(s, x)
    length = SequenceLength(s)
    there = OptionalHasElement(o)
}"""
BOUNDED = Options(bounds={"s": (3,)}, dims={"n": (0, 4)})
LISTED = Options(shapes={"s": ((2, 3), (1, 3))})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "net.onnx"
    onnx.save(parser.parse_model(TEXT), found)
    return found


@pytest.mark.parametrize("options", [BOUNDED, LISTED], ids=["slots", "a tensor for each"])
def test_random_lists_are_passed_in_and_compared(path: Path, options: Options) -> None:
    verdict = check(path, options, runs=4)
    assert verdict.ok
    assert [comparison.name for comparison in verdict.runs[0].outputs] == ["t", "length", "there"]


@pytest.mark.parametrize("right", [True, False])
def test_stored_lists_are_passed_in_and_compared(path: Path, right: bool) -> None:
    data = path.parent / "test_data_set_0"
    data.mkdir()
    s, x = [np.full((n, 3), n, np.float32) for n in (1, 4)], np.ones((2, 3), np.float32)
    t = [*s, x if right else -x]
    stored = {
        "input_0": numpy_helper.from_list(s),
        "input_1": numpy_helper.from_array(x),
        "input_2": numpy_helper.from_optional(None),
        "output_0": numpy_helper.from_list(t),
        "output_1": numpy_helper.from_array(np.array(2, np.int64)),
        "output_2": numpy_helper.from_array(np.array(False)),
    }
    for name, proto in stored.items():
        (data / f"{name}.pb").write_bytes(proto.SerializeToString())
    verdict = check(path, BOUNDED, data)
    assert [comparison.ok for comparison in verdict.runs[0].outputs] == [right, True, True]
