"""LiteRT's interpreter, with reference kernels: what a .tflite file computes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType


class Litert:
    """A model with its variables."""

    def __init__(self, data: bytes, optimised: bool = False) -> None:
        kinds = OpResolverType
        try:
            kind = kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES if optimised else kinds.BUILTIN_REF
            self.interpreter = self._made(data, kind)
        except ValueError:  # which has not all operators
            self.interpreter = self._made(data, kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES)

    def _made(self, data: bytes, kind: OpResolverType) -> Interpreter:
        made = Interpreter(model_content=data, experimental_op_resolver_type=kind)
        made.allocate_tensors()
        return made

    def __call__(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        details = self.interpreter.get_input_details()
        resized = [(d["index"], a.shape) for d, a in zip(details, inputs, strict=True) if tuple(d["shape"]) != a.shape]
        for index, shape in resized:
            self.interpreter.resize_tensor_input(index, shape)
        if resized:
            self.interpreter.allocate_tensors()
        for about, array in zip(details, inputs, strict=True):
            self.interpreter.set_tensor(about["index"], array)
        self.interpreter.invoke()
        return [self.interpreter.get_tensor(about["index"]) for about in self.interpreter.get_output_details()]
