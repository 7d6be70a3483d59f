"""The runtime compiled by every C compiler that is installed, callable on numpy arrays."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mccompile.base.discovery import data_folder
from mccompile.base.errors import WrongUse
from mccompile.toolchain.build import Library, compile_shared, find_compiler, load

_HARNESS = Path(__file__).with_name("harness.c")
_COMPILERS = [name for name in ("gcc", "clang", "tcc", "g++") if shutil.which(name)] or ["cc"]
_UNDEFINED = ["-fsanitize=undefined,float-cast-overflow"]


class Runtime:
    """`runtime("add_i8", a, b, dtype)` applies a function of the runtime to arrays, element by element."""

    def __init__(self, shared_object: Path, is_full: bool) -> None:
        self._shared_object = shared_object
        self._loaded: dict[str, Library] = {}
        self.is_full = is_full

    def library(self, cdef: str) -> Library:
        if cdef not in self._loaded:
            self._loaded[cdef] = load(self._shared_object, cdef)
        return self._loaded[cdef]

    def __call__(
        self, name: str, a: np.ndarray, b: np.ndarray | None = None, dtype: Any = None, out: np.ndarray | None = None
    ) -> np.ndarray:
        a = np.ascontiguousarray(a)
        b = a if b is None else np.ascontiguousarray(b)
        result = np.empty(a.shape, dtype or a.dtype) if out is None else out
        library = self.library(f"void t_{name}(const void *a, const void *b, void *r, ptrdiff_t n);")
        pointers = [library.ffi.cast("void *", array.ctypes.data) for array in (a, b, result)]
        getattr(library.functions, f"t_{name}")(*pointers, result.size if out is None else a.size)
        return result


@pytest.fixture(scope="session", params=_COMPILERS)
def _compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runtime:
    out = tmp_path_factory.mktemp("runtime") / "harness.so"
    compiler, include = find_compiler(request.param), [data_folder("runtime_c") / "include"]
    flags = ["-O1"] if request.param == "g++" else ["-std=c99", "-O1"]
    is_sanitized = request.param == "gcc"  # one compiler with, the others as users have them
    try:
        compile_shared(compiler, [_HARNESS], include, out, [*flags, *_UNDEFINED[: 1 if is_sanitized else 0]])
    except WrongUse:
        if not is_sanitized:
            raise
        compile_shared(compiler, [_HARNESS], include, out, flags)  # no sanitizer library here
    return Runtime(out, request.param == _COMPILERS[0])


@pytest.fixture
def runtime(_compiled: Runtime, capfd: pytest.CaptureFixture[str]) -> Iterator[Runtime]:
    yield _compiled
    undefined = re.findall(r".*runtime error.*", capfd.readouterr().err)
    assert not undefined, "undefined behaviour"
