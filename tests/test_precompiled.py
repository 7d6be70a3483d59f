"""Objects that tests share are those of what their sources read."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

import pytest

from mccompile.base.errors import MccError
from mccompile.toolchain.build import Compiler, compile_shared, load
from tests import precompiled

pytestmark = [
    pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="vectors of x86"),
    pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed"),
]
FLAGS = ("-std=c99", "-msse2")
SOURCES = {"a.c": '#include "a.h"\nint two(void);\nint both(void) { return ONE + two(); }\n', "a.h": "#define ONE 1\n"}


def built(folder: Path, number: int, **changed: str) -> int:
    """What the program of these files gives, in a folder of its own as each model has one."""
    here = folder / str(number)
    (here / "include").mkdir(parents=True)
    vectors = (
        "#include <emmintrin.h> /* immintrin.h */\nint two(void) { return _mm_cvtsi128_si32(_mm_set1_epi32(2)); }\n"
    )
    for name, text in {**SOURCES, "two.c": vectors, **changed}.items():
        (here / ("include" if name.endswith(".h") else "") / name).write_text(text)
    made = compile_shared(Compiler(("gcc",)), [here / "a.c", here / "two.c"], [here / "include"], here / "a.so", FLAGS)
    return int(load(made, "int both(void);").functions.both())


def test_each_text_is_compiled_once(tmp_path: Path) -> None:
    assert built(tmp_path, 0) == 3
    before = len(precompiled._objects)
    assert built(tmp_path, 1) == 3
    assert len(precompiled._objects) == before


def test_what_is_changed_is_compiled_anew(tmp_path: Path) -> None:
    assert built(tmp_path, 0) == 3
    assert built(tmp_path, 1, **{"a.h": "#define ONE 5\n"}) == 7
    assert built(tmp_path, 2, **{"two.c": "int two(void) { return 7; }\n"}) == 8


def test_what_is_wrong_is_told_as_ever(tmp_path: Path) -> None:
    with pytest.raises(MccError, match="two"):
        built(tmp_path, 0, **{"two.c": "int two(void) { return three; }\n"})
