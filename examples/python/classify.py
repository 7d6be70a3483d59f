"""Runs a compiled network from Python, through cffi: the pictures of ../digits, each told by what is in its C.

python examples/python/classify.py          # needs a C compiler, cffi and numpy
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path
from typing import Any

import cffi
import numpy as np

from mccompile.driver import Options, compile

DIGITS = Path(__file__).resolve().parent.parent / "digits"

# What of digits.h is used. The compiler is asked for the rest: "..." stands for what Python need not know.
DECLARATIONS = """
typedef struct { ...; } digits_model;
typedef enum { MCC_OK, ... } mcc_status;
#define DIGITS_ARENA_BYTES ...
#define DIGITS_ARENA_ALIGN ...
const char *mcc_status_text(mcc_status status);
mcc_status digits_init(digits_model *m, void *arena, size_t arena_bytes, const void *weights, size_t weights_bytes);
mcc_status digits_set_input_image(digits_model *m, const float *from);
mcc_status digits_run(digits_model *m);
const float *digits_output_scores(const digits_model *m);
"""


def extension(folder: Path) -> Any:
    """The network as a module of Python."""
    out = folder / "digits"
    compile(DIGITS / "digits.onnx", Options(external=("image",), blob="external")).write(out)
    builder = cffi.FFI()
    builder.cdef(DECLARATIONS)
    sources = [str(out / "digits.c"), str(out / "digits_kernels.c")]
    builder.set_source(
        "digits_network",
        '#include "digits.h"',
        sources=sources,
        include_dirs=[str(out), str(out / "runtime")],
        extra_compile_args=["-O2"],
    )
    path = builder.compile(tmpdir=str(folder))
    spec = importlib.util.spec_from_file_location("digits_network", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Network:
    """One instance. The weights are a buffer of Python's, the pictures arrays of numpy's: nobody copies them."""

    def __init__(self, module: Any, blob: bytes) -> None:
        self.ffi, self.c = module.ffi, module.lib
        self._weights = self._aligned(np.frombuffer(blob, np.uint8), 64)
        self._arena = self._aligned(np.zeros(self.c.DIGITS_ARENA_BYTES, np.uint8), self.c.DIGITS_ARENA_ALIGN)
        self._model = self.ffi.new("digits_model *")
        arena, weights = (self.ffi.from_buffer(memory) for memory in (self._arena, self._weights))
        self._check(self.c.digits_init(self._model, arena, self._arena.size, weights, self._weights.size))

    def scores(self, picture: np.ndarray) -> np.ndarray:
        dense = np.ascontiguousarray(picture, np.float32)
        self._check(self.c.digits_set_input_image(self._model, self.ffi.from_buffer("float[]", dense)))
        self._check(self.c.digits_run(self._model))
        return np.frombuffer(self.ffi.buffer(self.c.digits_output_scores(self._model), 40), np.float32).copy()

    def _check(self, status: int) -> None:
        if status != self.c.MCC_OK:
            raise RuntimeError(self.ffi.string(self.c.mcc_status_text(status)).decode())

    @staticmethod
    def _aligned(contents: np.ndarray, align: int) -> np.ndarray:
        room = np.zeros(contents.size + align, np.uint8)
        start = -room.ctypes.data % align
        room[start : start + contents.size] = contents
        return room[start : start + contents.size]


def main() -> int:
    pictures = np.load(DIGITS / "pictures.npz")
    with tempfile.TemporaryDirectory() as folder:
        module = extension(Path(folder))
        network = Network(module, Path(folder, "digits", "digits.mcb").read_bytes())
        told = [int(network.scores(pixels / 16).argmax()) for pixels in pictures["pixels"]]
    right = int(np.sum(np.array(told) == pictures["labels"]))
    print(f"{right} of {len(told)} pictures are told right")
    return 0 if np.array_equal(told, pictures["predictions"]) else 1


if __name__ == "__main__":
    sys.exit(main())
