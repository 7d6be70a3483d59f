"""Runs a program in numpy, before kernels are chosen: every call by the oracle of its kind."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import numpy as np
from numpy.lib.stride_tricks import as_strided

from mccompile.base.dims import static
from mccompile.kinds.map import Map
from mccompile.program.ir import Buffer, Program, View


def outputs(program: Program, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What a program without regions makes of its inputs."""
    memory: dict[Buffer, np.ndarray] = {}
    for buffer in program.buffers():
        if buffer.constant is not None:
            memory[buffer] = np.ascontiguousarray(buffer.constant.array).reshape(-1)
        else:
            memory[buffer] = np.zeros(static(buffer.type.count), buffer.dtype.numpy)
    for name, buffer in program.inputs:
        memory[buffer][...] = inputs[name].reshape(-1)
    with np.errstate(all="ignore"):
        for call in program.calls():
            oracle = import_module(f"tests.kernels.oracles.{call.kind.name}").oracle
            operands = [_seen(memory, view) for view in call.ins]
            more = {"shape": call.outs[0].type.static_shape} if isinstance(call.kind, Map) else {}
            found = oracle(call.kind, *operands, **more)
            for view, result in zip(call.outs, found if isinstance(found, tuple) else (found,), strict=True):
                _seen(memory, view)[...] = result
    return {name: _seen(memory, view).copy() for name, view in program.outputs}


def _seen(memory: Mapping[Buffer, np.ndarray], view: View) -> np.ndarray:
    flat = memory[view.buffer]
    shape = view.type.static_shape
    if 0 in shape:
        return np.zeros(shape, flat.dtype)
    assert 0 <= static(view.offset) < max(flat.size, 1)
    strides = [static(stride) * flat.itemsize for stride in view.strides]
    return as_strided(flat[static(view.offset) :], shape, strides)
