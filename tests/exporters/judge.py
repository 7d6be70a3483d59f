"""Compiles and runs a model, and holds it against a reference and against its canonical spelling.

Invariant: the reference is onnxruntime without its optimiser, or ONNX's evaluator where onnxruntime has no such
operator; nothing of mccompile takes part in it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
from onnx import ModelProto

from mccompile.base.errors import MccError
from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.frontend.u8s8_to_u8u8 import u8s8_to_u8u8
from mccompile.measure.correctness import build
from mccompile.targets import api as targets
from mccompile.toolchain.emulate import Emulated, run_command
from mccompile.toolchain.run import Model

_CLOSE = 3e-5  # of the largest number of a result
COUNTED_ON = "cortex-m4"
_QUICKEST = "tcc" if which("tcc") else None


@dataclass(frozen=True)
class Made:
    arena: int
    inputs: int  # bytes of it
    steps: int
    results: Mapping[str, np.ndarray]


def made(model: ModelProto, feeds: Mapping[str, np.ndarray], options: Options) -> Made:
    graph = load_proto(model, None, options.dims, options.shapes, bounds=options.bounds)
    package = compile_graph(graph, options, "spelled")
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        package.write(Path(scratch, "out"))
        built = Model.build(Path(scratch, "out"), _QUICKEST, ())
    plan = package.plan
    inputs = sum(tensor.type.max_bytes for tensor in plan.inputs)
    return Made(plan.arena_bytes, inputs, sum(1 for _ in plan.steps()), built.run(feeds, poison=0xA5))


def can_count() -> bool:
    target = targets.load(COUNTED_ON)
    return which(target.compiler) is not None and which(run_command(target)[0]) is not None


def instructions(model: ModelProto, feeds: Mapping[str, np.ndarray], options: Options) -> int | None:
    """What a run takes on the core below, as its emulator counts; None where it is too large for that core."""
    graph = load_proto(model, None, options.dims, options.shapes, bounds=options.bounds)
    try:
        package = compile_graph(graph, replace(options, target=COUNTED_ON), "spelled")
        built = build(package, replace(options, target=COUNTED_ON).resolved_target(), None)
        assert isinstance(built, Emulated)
        return built.count(feeds).run_instructions
    except MccError:
        return None


def wanted(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    names = [output.name for output in model.graph.output]
    try:
        results = _onnxruntime(model, feeds)
    except _no_such_model():
        from onnx.reference import ReferenceEvaluator

        results = ReferenceEvaluator(model).run(None, dict(feeds))
    return dict(zip(names, map(np.asarray, results), strict=True))


def _onnxruntime(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> list[Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    exact = u8s8_to_u8u8(model).SerializeToString()
    session = onnxruntime.InferenceSession(exact, options, providers=["CPUExecutionProvider"])
    found: list[Any] = session.run(None, dict(feeds))
    return found


def _no_such_model() -> tuple[type[Exception], ...]:
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    return (state.InvalidGraph, state.NotImplemented, state.Fail, state.InvalidArgument)


def differences(got: Mapping[str, np.ndarray], want: Mapping[str, np.ndarray], off: int, close: float) -> list[str]:
    """What differs; `off`: by how much integers may."""
    found = []
    for name, right in want.items():
        have = got[name]
        if have.shape != right.shape or have.dtype != right.dtype:
            found.append(f"{name} is {have.dtype}{list(have.shape)}, not {right.dtype}{list(right.shape)}")
        elif right.dtype.kind in "iub":
            worst = np.abs(have.astype(np.int64) - right.astype(np.int64)).max(initial=0)
            found += [f"{name} differs by {worst}"] if worst > off else []
        elif right.dtype.kind == "f":
            a, b = have.astype(np.float64), right.astype(np.float64)
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            largest = np.abs(b[np.isfinite(b)]).max(initial=0)
            with np.errstate(invalid="ignore"):
                wrong = ~same & ~(np.abs(a - b) <= close * max(largest, 1e-6))
            if wrong.any():
                place = tuple(int(i) for i in np.argwhere(wrong)[0])
                found.append(f"{name}: {int(wrong.sum())} of {a.size} differ, at {place} {a[place]} for {b[place]}")
        elif not np.array_equal(have, right):
            found.append(f"{name} differs")
    return found
