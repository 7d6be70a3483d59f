"""The side file of printed IR."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from mccompile.base.constant import Constant
from mccompile.base.errors import BadFile
from mccompile.passes.constants_file import read_constants, write_constants

ARRAYS = {
    "floats": np.array([[1.5, -2], [np.inf, 0]], np.float32),
    "scalar": np.array(7, np.int64),
    "empty": np.zeros((0, 3), np.uint8),
    "bools": np.array([True, False]),
    "bfloat16": np.array([1.5, -2], ml_dtypes.bfloat16),
    "packed": np.array([-8, 7, 1], ml_dtypes.int4),
    "strings": np.array(["a", "", "lång"], object),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_a_constant_comes_back(tmp_path: Path, name: str) -> None:
    path = tmp_path / "constants.zip"
    constant = Constant.of(ARRAYS[name])
    write_constants(path, {constant.digest: constant})
    (found,) = read_constants(path).values()
    assert found.type == constant.type
    assert found.array.tolist() == constant.array.tolist() or name == "floats"
    assert found.digest == constant.digest


def test_more_can_be_added_and_nothing_is_written_twice(tmp_path: Path) -> None:
    path = tmp_path / "constants.zip"
    constants = [Constant.of(array) for array in ARRAYS.values()]
    for count in (1, 3, len(constants), len(constants)):
        write_constants(path, {c.digest: c for c in constants[:count]})
    size = path.stat().st_size
    write_constants(path, {c.digest: c for c in constants})
    assert path.stat().st_size == size
    assert set(read_constants(path)) == {c.digest for c in constants}


def test_equal_constants_give_equal_bytes(tmp_path: Path) -> None:
    constant = Constant.of(ARRAYS["floats"])
    for name in ("a", "b"):
        write_constants(tmp_path / name, {constant.digest: constant})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_what_is_not_such_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "constants.zip"
    path.write_bytes(b"no zip file")
    with pytest.raises(BadFile, match="cannot read the constants"):
        read_constants(path)


def test_damage_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "constants.zip"
    one, two = (Constant.of(np.full(4, n, np.float32)) for n in (1, 2))
    write_constants(path, {one.digest: two})
    with pytest.raises(BadFile, match="are not its own"):
        read_constants(path)
