"""band_products: products with constant matrices whose columns are 0 except for short runs, such as the filters of a
spectrum, store and multiply only these runs, where that costs less.

How long the runs are is a fact about values, and recorded. Runs are of one length, so that code has it as a literal and
no blob can lead outside. Before passes that store weights in fewer bits.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...base.constant import Constant
from ...base.dims import static
from ...base.names import Names
from ...kernels.api import Cost, viewed
from ...kernels.registry import effort
from ...kinds.band_gemm import BandGemm
from ...kinds.gemm import Gemm
from ...program.ir import CONSTANT, Buffer, Call, Program, View
from ...program.taken_names import taken_names
from ..api import Context

ROUND = 4  # runs are a multiple of this, which kernels can unroll
LEAST = 4  # times as much that a product multiplies otherwise


def band_products(program: Program, context: Context) -> None:
    if context.training.updatable:
        return
    names = taken_names(program)
    for call in program.calls():
        if isinstance(call.kind, Gemm) and call.kind.fixed == 2:
            _shorten(call, names, program, context)


def _shorten(call: Call, names: Names, program: Program, context: Context) -> None:
    kind, view = call.kind, call.ins[1]
    constant = view.buffer.constant
    assert isinstance(kind, Gemm)
    if view.buffer.role != CONSTANT or constant is None or not all(each.is_static for each in (*call.ins, *call.outs)):
        return
    if any(dim != 1 and stride != 0 for dim, stride in zip(view.shape[:-2], view.strides[:-2], strict=True)):
        return
    rows, columns = (static(dim) for dim in view.shape[-2:])
    name, near = view.buffer.name, view.buffer.provenance
    total, dtype = kind.accumulator, view.buffer.dtype
    alike = dtype.is_float if total.is_float else dtype is total  # bytes have kernels of their own
    if not alike or rows < LEAST * ROUND or not columns or 0 in view.shape:
        return
    matrix = viewed(view, constant).reshape(-1, rows, columns)[0]
    first, run = _runs(matrix != 0)
    fact = f"columns of {name} have at most {run} elements in a row that are not 0"
    if run * LEAST > rows or not context.training.may_use(fact):
        return
    runs = np.ascontiguousarray(np.stack([matrix[at : at + run, column] for column, at in enumerate(first)]))
    made = [
        Buffer(names.take(f"{name}_{what}"), c.type.dtype, c.type.shape, CONSTANT, c, near)
        for what, c in (("first", Constant.of(first)), ("runs", Constant.of(runs)))
    ]
    operands = (View(made[0], (columns,), (1,)), View(made[1], (columns, run), (run, 1)))
    short = replace(call, kind=BandGemm(kind.accumulator, kind.epilogue), ins=(call.ins[0], *operands, *call.ins[2:]))
    if _effort(short, context, first.nbytes + runs.nbytes) < _effort(call, context, matrix.nbytes):
        program.assumptions[fact] = None
        call.kind, call.ins = short.kind, short.ins


def _runs(used: np.ndarray) -> tuple[np.ndarray, int]:
    """Where each column begins, and the one length that holds what each has."""
    rows = len(used)
    low = np.where(used.any(axis=0), used.argmax(axis=0), 0)
    high = np.where(used.any(axis=0), rows - used[::-1].argmax(axis=0), 0)
    run = min(-(-max(int((high - low).max()), 1) // ROUND) * ROUND, rows)
    return np.minimum(low, rows - run).astype(np.int32), run


def _effort(call: Call, context: Context, nbytes: int) -> float:
    candidates = context.registry.choose(call, context.target).candidates
    if not candidates:
        return float("inf")
    cost = candidates[0].cost
    return effort(Cost(cost.time, cost.code, cost.blob + nbytes), context.target)
