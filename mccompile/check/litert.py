"""What a .tflite file should compute: LiteRT's interpreter, where it is installed. The only module that imports it.

Its kernels do not agree with each other: they round twice in places, each in its own way. So integers may be off by two
steps (one for an operator, and one for a Softmax behind it), and floats that come out of quantized tensors by as much.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..frontend.original import Original

STEPS = 2
OF_LARGEST = STEPS / 127
_KINDS = ("AUTO", "BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES")


def speaks_for(original: Original) -> bool:
    """Is the interpreter there for the file, and does it take what we give it? It keeps states to itself, and runs the
    first subgraph."""
    there = find_spec("ai_edge_litert") is not None
    return there and not (original.reading.signature or original.states) and bool(original.tflite)


class Litert:
    """A file in one kind of kernels after the other."""

    def __init__(self, original: Original) -> None:
        self.original = original
        self._made: dict[str, Any] = {}
        self._sizes: dict[str, list[tuple[int, ...]]] = {}  # of inputs, that memory was laid out for

    def run(self, inputs: Mapping[str, Any], kind: str = _KINDS[0]) -> dict[str, Any] | None:
        """Outputs by name; None where these kernels cannot run the model."""
        if kind not in self._made:
            with _quiet():
                self._made[kind] = _interpreter(self.original.tflite, kind)
        found = self._made[kind]
        if found is None:
            return None
        try:
            given = [np.asarray(inputs[name]) for name in self.original.inputs]
            self._allocate(kind, given)
            for about, array in zip(found.get_input_details(), given, strict=True):
                found.set_tensor(about["index"], array)
            found.invoke()
            made = [found.get_tensor(about["index"]) for about in found.get_output_details()]
            return dict(zip(self.original.outputs, made, strict=True))
        except (RuntimeError, ValueError):
            return None

    def _allocate(self, kind: str, given: Sequence[np.ndarray]) -> None:
        sizes, found = [array.shape for array in given], self._made[kind]
        if self._sizes.get(kind) == sizes:
            return
        for about, size in zip(found.get_input_details(), sizes, strict=True):
            if tuple(about["shape"]) != size:
                found.resize_tensor_input(about["index"], size)
        with _quiet():
            found.allocate_tensors()
        self._sizes[kind] = sizes

    def others(self) -> Iterator[Callable[[Mapping[str, Any]], dict[str, Any] | None]]:
        """The same model in all kinds of kernels, those of `run` first."""
        for kind in _KINDS:
            yield partial(self.run, kind=kind)


def _interpreter(data: bytes, kind: str) -> Any:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    try:
        return Interpreter(model_content=data, num_threads=1, experimental_op_resolver_type=OpResolverType[kind])
    except (RuntimeError, ValueError):
        return None


@contextmanager
def _quiet() -> Iterator[None]:
    """It prints to standard error what it does, whatever it is told."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
