"""Image functions as Python functions: the library is compiled once, and called with numpy's arrays."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from mccompile.imgproc.api import ImageFunction
from mccompile.imgproc.package import library
from mccompile.imgproc.printing import parameters, scratch_bytes
from mccompile.imgproc.requests import asked_for, chosen

FLAGS = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]


class Built:
    def __init__(self, functions: Sequence[ImageFunction]) -> None:
        self.functions = {fn.symbol: fn for fn in functions}
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name, "out")
            library(functions).write(folder)
            flags = [*FLAGS, "-shared", "-fPIC", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
            places = [f"-I{folder}", f"-I{folder}/runtime"]
            made = folder / "imgproc.so"
            subprocess.run(["gcc", *flags, *places, str(folder / "imgproc.c"), "-o", str(made), "-lm"], check=True)
            self.code = ctypes.CDLL(str(made))

    def __call__(self, symbol: str, x: np.ndarray, sizes: dict[str, int], gap: int = 0, **extras: Any) -> np.ndarray:
        """The result; rows of both pictures lie `gap` elements further apart than they are long."""
        fn = self.functions[symbol]
        source, made = fn.shapes(sizes)
        assert x.shape == source
        wide = np.full((source[0], source[1] * source[2] + gap), 77, x.dtype)
        wide[:, : source[1] * source[2]] = x.reshape(source[0], -1)
        y = np.full((made[0] + 1, made[1] * made[2] + gap), 99, x.dtype)
        room = scratch_bytes(fn, sizes)
        scratch = np.full(room // 4 + 2, 0x5A5A5A5A, np.uint32)
        values: dict[str, Any] = {name: ctypes.c_ssize_t(number) for name, number in sizes.items()}
        values |= {"x_stride": ctypes.c_ssize_t(wide.shape[1]), "y_stride": ctypes.c_ssize_t(y.shape[1])}
        values |= {"x": ctypes.c_void_p(wide.ctypes.data), "y": ctypes.c_void_p(y.ctypes.data)}
        values |= {"scratch": ctypes.c_void_p(scratch.ctypes.data), "scratch_bytes": ctypes.c_size_t(room)}
        kept = []
        for name, value in extras.items():
            if isinstance(value, tuple):
                kept.append((ctypes.c_double * len(value))(*value))
                values[name] = kept[-1]
            elif "float" in fn.extras[name] or "uint8_t" in fn.extras[name]:
                values[name] = ctypes.c_float(value) if "float" in fn.extras[name] else ctypes.c_uint8(int(value))
            else:
                values[name] = ctypes.c_ssize_t(value)
        status = getattr(self.code, f"imgproc_{symbol}")(*(values[name] for name in parameters(fn)))
        assert status == 0, f"status {status}"
        assert (scratch[(room + 3) // 4 :] == 0x5A5A5A5A).all()
        row = made[1] * made[2]
        assert (y[-1] == 99).all() and (y[:, row:] == 99).all()
        return np.ascontiguousarray(y[:-1, :row]).reshape(made)


@cache
def built(functions: str, dtype: str = "u8", **sizes: Any) -> Built:
    return Built(chosen(functions.split(","), asked_for(dtype, **sizes)))
