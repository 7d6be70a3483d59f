"""Weights of few bits as kernels of block_gemm want them, and the cases that test these kernels.

Invariant: packed weights are stored as unsigned numbers, those that have a sign raised by half of their range
(`raised`), so that unpacking is a shift and a mask; the same is added to zero points where they are subtracted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ...base.constant import Constant
from ...base.dims import ceil_div, static
from ...base.dtypes import DTYPES, DType, bool_, f16, f32, i8, u8
from ...base.tensor import TensorType
from ...expr.ir import apply, operand
from ...kernels.api import Case, viewed
from ...kinds.block_gemm import BlockGemm
from ...program.ir import CONSTANT, Call
from ...targets.api import Target
from ..cases import RELU_OF_SUM
from ..loops import size_name
from ..vector.vector_tiles import vector_refusal


def kind_of(call: Call) -> BlockGemm:
    return call.of(BlockGemm)


def weights_refusal(call: Call) -> str:
    """Why weights, scales and zero points cannot be packed, or nothing."""
    views = call.ins[1 : kind_of(call).fixed]
    if any(view.buffer.role != CONSTANT or not isinstance(view.offset, int) for view in views):
        return "weights and scales are computed at run time"
    return ""


def vector_refusal_of(call: Call, target: Target) -> str:
    """Why kernels with vectors of 32-bit floats cannot take a call, or nothing."""
    views = (call.ins[0], *call.ins[kind_of(call).fixed :], *call.outs)
    if any(view.buffer.dtype not in (f32, bool_) for view in views) or call.outs[0].buffer.dtype is not f32:
        return "only for 32-bit floats"
    if 0 in (*call.ins[1].shape, call.ins[0].shape[0]):
        return "the result is empty"
    return vector_refusal(target) or weights_refusal(call)


def label(call: Call) -> str:
    sizes = (*call.ins[0].shape, call.ins[1].shape[1])
    return f"gemm_{call.ins[1].buffer.dtype.bits}_bits_" + "x".join(map(size_name, sizes))


def raised(dtype: DType) -> int:
    """What is added to a weight before it is stored."""
    return 1 << (dtype.bits - 1) if dtype.kind == "int" else 0


def contents(call: Call, constants: Mapping[int, Constant]) -> tuple[np.ndarray, list[np.ndarray]]:
    """The weights [N, K], raised, and the scales and zero points, [N, blocks] each."""
    b = viewed(call.ins[1], constants[1]).astype(np.int16).T + raised(call.ins[1].buffer.dtype)
    blocks = [viewed(call.ins[i], constants[i]).T for i in range(2, kind_of(call).fixed)]
    return b.astype(np.uint8), blocks


def stored(numbers: np.ndarray, dtype: DType) -> np.ndarray:
    """Unsigned numbers as elements of a type with the same bits."""
    bits = numbers.astype(np.int16)
    return (bits - ((bits >= 1 << (dtype.bits - 1)) << dtype.bits) if raised(dtype) else bits).astype(dtype.numpy)


def cases() -> list[Case]:
    """All types, blocks that end inside of bytes and words, rows and columns around the sizes of tiles."""
    found = [
        case_of(f"{dtype}_{'zeros' if zeros else 'plain'}", (3, 64, 21), dtype, 16, zeros)
        for dtype in ("i2", "u2", "i4", "u4", "i8", "u8")
        for zeros in (False, True)
    ]
    sizes = [(1, 32, 1), (1, 96, 16), (1, 128, 100), (2, 40, 17), (5, 64, 33), (9, 48, 50), (33, 160, 37)]
    found += [case_of(f"rows_{m}x{k}x{n}", (m, k, n), "u4", 32, True) for m, k, n in sizes]
    found += [
        case_of("odd_block", (3, 31, 18), "i4", 7, True),
        case_of("one_block", (3, 27, 9), "u2", 256, True),
        case_of("long_sum", (2, 1500, 6), "i8", 128, False),
        case_of("many_rows", (70, 700, 20), "u4", 128, True),
        case_of("blocks_of_one", (2, 5, 9), "i4", 1, False),
    ]
    turned = case_of("turned", (3, 40, 19), "u4", 16, True)
    found.append(replace(turned, permute={index: (1, 0) for index in range(4)}))
    found += [case_of(f"row_{dtype}", (1, 152, 80), dtype, 32, dtype == "u8") for dtype in ("u2", "i4", "i8", "u8")]
    uneven = np.geomspace(1e-6, 900, 152, dtype=np.float32).reshape(1, 152)[:, ::-1]
    found.append(replace(case_of("row_uneven", (1, 152, 80), "i4", 32, False), values={0: uneven}))
    for m, k, n in ((1, 96, 16), (3, 70, 21), (40, 64, 35)):
        wide = case_of(f"half_scales_{m}x{k}x{n}", (m, k, n), "i4", 32, False)
        found.append(replace(wide, ins=(*wide.ins[:2], replace(wide.ins[2], dtype=f16))))
    found.append(replace(case_of("alike", (3, 40, 19), "i4", 16, False), repeated={2: (0,)}))
    for name, repeated in (("bias", (0,)), ("residual", ())):
        for rows in (1, 40):
            case = case_of(f"epilogue_{name}_{rows}", (rows, 32, 19), "u4", 16, True)
            kind = replace(case.kind, epilogue=RELU_OF_SUM) if isinstance(case.kind, BlockGemm) else case.kind
            found.append(replace(case, kind=kind, ins=(*case.ins, *case.outs), repeated={4: repeated}))
    curved = case_of("cut_sum_with_curve", (20, 320, 24), "i4", 32, False)
    tanh = BlockGemm(32, epilogue=apply("tanh", operand(0, f32)))
    found.append(replace(curved, kind=tanh, error=1e-5))  # sums are some ten times as large as what tanh makes of them
    return found


def rounded(case: Case) -> Case:
    """With leave to round activations."""
    return replace(case, kind=replace(case.kind, rounds=True)) if isinstance(case.kind, BlockGemm) else case


def case_of(name: str, sizes: tuple[int, int, int], stored: str, block: int, zeros: bool) -> Case:
    (rows, depth, columns), dtype = sizes, DTYPES[stored]
    blocks = (static(ceil_div(depth, block)), columns)
    ins = [TensorType(f32, (rows, depth)), TensorType(dtype, (depth, columns)), TensorType(f32, blocks)]
    ins += [TensorType(i8 if dtype.kind == "int" else u8, blocks)] * zeros
    out = TensorType(f32, (rows, columns))
    ranges = {1: (dtype.low, dtype.high), 2: (0.01, 0.1), 3: (dtype.low, dtype.high)}
    return Case(name, BlockGemm(block, zeros), tuple(ins), (out,), constant=frozenset({1, 2, 3}), ranges=ranges)
