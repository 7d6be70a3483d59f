"""Kernels for vectors at sizes around their blocks: every pair of odd sizes in any two dimensions, in buffers that are
no better aligned than a float has to be, between guard bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mccompile.base.dtypes import f16, f32, i32, i64
from mccompile.base.tensor import TensorType
from mccompile.codegen.attention_cases import SCALED, TURNED, attention_case, with_score
from mccompile.codegen.blocks.block_weights import case_of
from mccompile.codegen.vector.vector_tiles import HALF_ERROR, HALF_RELU
from mccompile.expr.ir import apply, cast, literal, operand
from mccompile.kernels.api import Case, Kernel, Needs
from mccompile.kernels.registry import Registry
from mccompile.kinds.arg_reduce import ArgReduce
from mccompile.kinds.conv import Conv
from mccompile.kinds.gemm import Gemm
from mccompile.kinds.map import Map
from mccompile.kinds.normalize import Normalize
from mccompile.kinds.pool import Pool
from mccompile.kinds.recurrent import LSTM, Recurrent
from mccompile.kinds.reduce import Reduce
from mccompile.kinds.resize import Resize
from mccompile.targets import api as targets
from tests.kernels.harness import call_of
from tests.kernels.test_matrix import wrong_results

SIZES = (1, 2, 3, 7, 15, 16, 17, 31, 33)
KERNELS = Registry.load()
NATIVE = targets.load("native")
LAST = (0, 2, 3, 1)
RELU = apply("max", apply("add", operand(0, f32), operand(1, f32)), literal(0, f32))
PLAIN = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, f32, RELU)


def triples() -> list[tuple[int, int, int]]:
    """Any two of the three are every pair of sizes once: rows of an orthogonal array."""
    count = len(SIZES)
    return [(SIZES[i], SIZES[j], SIZES[(i + j) % count]) for i in range(count) for j in range(count)]


def floats(*shape: int) -> TensorType:
    return TensorType(f32, shape)


def conv(c_in: int, c_out: int, width: int, kind: Conv = PLAIN, height: int = 2, window: int = 3) -> Case:
    shape, w = (1, c_in, height, width), (c_out, c_in // kind.group, window, window)
    out = floats(*kind.out_shape(shape, w))
    name = f"{c_in}_{c_out}_{width}_{height}"
    places = {"permute": {0: LAST, 2: LAST}, "permute_outs": {0: LAST}}
    return Case(name, kind, (floats(*shape), floats(*w), out), (out,), constant=frozenset({1}), **places)


def pointwise(c_in: int, c_out: int, width: int) -> Case:
    return conv(c_in, c_out, width, replace(PLAIN, pads=(0, 0, 0, 0)), 1, 1)


def grouped(c_in: int, c_out: int, width: int) -> Case:
    return conv(3 * c_in, 3 * c_out, width, replace(PLAIN, group=3))


def winograd(c_in: int, c_out: int, width: int) -> Case:
    return replace(conv(c_in, c_out, width, height=5), error=3e-6)


def winograd_columns(c_in: int, c_out: int, width: int) -> Case:
    """Of which only rows of taps are transformed, two apart."""
    kind = replace(PLAIN, dilations=(1, 2), pads=(0, 2, 0, 2))
    shape, w = (1, c_in, 2, width), (c_out, c_in, 1, 3)
    case, out = conv(c_in, c_out, width, kind), floats(*kind.out_shape(shape, w))
    return replace(case, ins=(floats(*shape), floats(*w), out), outs=(out,), error=3e-6)


def winograd_video(c_in: int, c_out: int, width: int) -> Case:
    kind = Conv((1, 1, 1), (1, 1, 1), (1,) * 6, 1, f32, RELU)
    shape, w, last = (1, c_in, 3, 5, width), (c_out, c_in, 3, 3, 3), (0, 2, 3, 4, 1)
    out = floats(*kind.out_shape(shape, w))
    case, places = conv(c_in, c_out, width), {"permute": {0: last, 2: last}, "permute_outs": {0: last}}
    return replace(case, kind=kind, ins=(floats(*shape), floats(*w), out), outs=(out,), error=3e-6, **places)


def depthwise(channels: int, height: int, width: int) -> Case:
    return conv(channels, channels, width, replace(PLAIN, group=channels), min(height, 3))  # long to compile


def pool(channels: int, height: int, width: int) -> Case:
    space = (-(-height // 2), -(-width // 2))
    kind = Pool("max", (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), space, f32)
    out = floats(1, channels, *space)
    x = floats(1, channels, height, width)
    return Case(f"{channels}_{height}_{width}", kind, (x,), (out,), permute={0: LAST}, permute_outs={0: LAST})


def gemm(rows: int, depth: int, columns: int, constant: bool = True) -> Case:
    out = floats(rows, columns)
    ins = (floats(rows, depth), floats(depth, columns), out)
    return Case(f"{rows}_{depth}_{columns}", Gemm(f32, RELU), ins, (out,), constant=frozenset({1} if constant else ()))


def gemm_direct(rows: int, depth: int, columns: int) -> Case:
    return gemm(rows, depth, columns, constant=False)


def add(first: int, second: int, last: int) -> Case:
    """An operand that is the same for all of the middle axis."""
    shape = floats(first, second, last)
    expr = apply("add", operand(0, f32), operand(1, f32))
    return Case(f"{first}_{second}_{last}", Map(expr), (shape, shape), (shape,), repeated={1: (1,)})


def turned(first: int, second: int, last: int) -> Case:
    """An operand that lies across the result."""
    shape = floats(first, second, last)
    expr = apply("add", operand(0, f32), operand(1, f32))
    return Case(f"{first}_{second}_{last}", Map(expr), (shape, shape), (shape,), permute={1: (0, 2, 1)})


def softmax(first: int, second: int, last: int) -> Case:
    shape = floats(first, second, last)
    return Case(f"{first}_{second}_{last}", Normalize((2,), "softmax", f32), (shape,), (shape,))


def softmax_of_columns(first: int, second: int, last: int) -> Case:
    shape = floats(first, second, last)
    return Case(f"{first}_{second}_{last}", Normalize((1,), "softmax", f32), (shape,), (shape,))


def attention(rows: int, keys: int, channels: int) -> Case:
    return attention_case(f"{rows}_{keys}_{channels}", with_score(SCALED), (1, rows, 5, keys, channels), TURNED)


def attention_in_blocks(rows: int, depth: int, channels: int) -> Case:
    """More keys than a block has."""
    kind = replace(with_score(SCALED), epilogue=RELU)
    return attention_case(f"{rows}_{depth}_{channels}", kind, (1, rows, depth + 90, 131, channels))


def totals(first: int, second: int, last: int) -> Case:
    """The last axis is reduced."""
    shape = (first, second, last)
    kind = Reduce((2,), "add", f32, operand(0, f32), RELU)
    return Case(
        f"{first}_{second}_{last}", kind, (floats(*shape), floats(first, second, 1)), (floats(first, second, 1),)
    )


def totals_of_columns(first: int, second: int, last: int) -> Case:
    """The middle axis is reduced."""
    shape = (first, second, last)
    kind = Reduce((1,), "max", f32, operand(0, f32), RELU)
    return Case(f"{first}_{second}_{last}", kind, (floats(*shape), floats(first, 1, last)), (floats(first, 1, last),))


def places(first: int, second: int, last: int) -> Case:
    """Of the largest elements along the middle axis."""
    shape, out = (first, second, last), TensorType(i64, (first, 1, last))
    return Case(f"{first}_{second}_{last}", ArgReduce(1, True), (floats(*shape),), (out,))


def lstm(batch: int, hidden: int, time: int) -> Case:
    x = operand(0, f32)
    one = literal(1, f32)
    sigmoid, tanh = apply("div", one, apply("add", one, apply("exp", apply("neg", x)))), apply("tanh", x)
    kind = Recurrent(LSTM, (sigmoid, tanh, tanh), f32, gives=("y",))
    ins = (floats(time, batch, 1, 4 * hidden), floats(1, 4 * hidden, hidden))
    case = Case(f"{batch}_{hidden}_{time}", kind, ins, (floats(time, 1, batch, hidden),), constant=frozenset({1}))
    return replace(case, ranges={1: (-0.2, 0.2)})  # larger weights make small differences grow with time


def resize(channels: int, width: int, wanted: int, last: bool = True) -> Case:
    """Cubic along the rows, linear along the columns; the height is multiplied by one and a half."""
    x, out = floats(1, channels, 2, width), floats(1, channels, 3, wanted)
    tables = [TensorType(type, shape) for shape in ((3, 2), (wanted, 4)) for type in (i32, f32)]
    permute = {0: LAST, 5: LAST} if last else {}
    ins, ranges = (x, *tables, out), {1: (0.0, 1.0), 3: (0.0, width - 1.0)}
    case = Case(f"{channels}_{width}_{wanted}", Resize((2, 3), (2, 4), f32, RELU), ins, (out,), permute, ranges=ranges)
    return replace(case, permute_outs={0: LAST} if last else {})


def resize_planar(channels: int, width: int, wanted: int) -> Case:
    return resize(channels, width, wanted, last=False)


def block_gemm(rows: int, depth: int, columns: int) -> Case:
    return case_of(f"{rows}_{depth}_{columns}", (rows, depth, columns), "u4", 7, True)


def block_gemm_few(rows: int, depth: int, columns: int) -> Case:
    return replace(block_gemm(min(rows, 4), depth, columns), name=f"{rows}_{depth}_{columns}")


def serves(kernel: Kernel, case: Case, target: targets.Target = NATIVE) -> bool:
    """Rows of a few elements are left to portable kernels."""
    return isinstance(kernel.match(call_of(kernel, case)[0], target), Needs)


FAMILIES: Sequence[tuple[str, Callable[[int, int, int], Case]]] = [
    ("conv/f32_nhwc_tile__vec", conv),
    ("conv/f32_nhwc_tile__vec", pointwise),
    ("conv/f32_nhwc_tile__vec", grouped),
    ("conv/f32_nhwc_winograd__vec", winograd),
    ("conv/f32_nhwc_winograd__vec", winograd_columns),
    ("conv/f32_nhwc_winograd__vec", winograd_video),
    ("conv/f32_nhwc_depthwise__vec", depthwise),
    ("pool/f32_nhwc_windows__vec", pool),
    ("gemm/f32_rows_tile__vec", gemm),
    ("gemm/f32_rows_tile__vec", gemm_direct),
    ("block_gemm/f32_rows_tile__vec", block_gemm),
    ("block_gemm/f32_rows_few__vec", block_gemm_few),
    ("attention/f32_rows_blocks__vec", attention),
    ("attention/f32_rows_blocks__vec", attention_in_blocks),
    ("map/f32_strided_loops__vec", add),
    ("map/f32_turned_tiles__vec", turned),
    ("normalize/f32_rows_loops__vec", softmax),
    ("normalize/f32_strided_groups__vec", softmax_of_columns),
    ("reduce/f32_strided_lanes__vec", totals),
    ("reduce/f32_strided_lanes__vec", totals_of_columns),
    ("arg_reduce/f32_strided_lanes__vec", places),
    ("recurrent/f32_rows_cells__vec", lstm),
    ("resize/f32_rows_separable__vec", resize),
    ("resize/f32_rows_separable__vec", resize_planar),
]


# Those whose kernels compute in 16 bits, or round to them.
OF_COLUMNS = (turned, softmax_of_columns, totals, totals_of_columns)
OF_ATTENTION = (attention, attention_in_blocks)
OF_WINOGRAD = (winograd_columns, winograd_video)
OF_FLOATS = (*OF_ATTENTION, *OF_WINOGRAD, block_gemm, block_gemm_few, places, lstm, resize, resize_planar, *OF_COLUMNS)
HALF_FAMILIES = [(id, family) for id, family in FAMILIES if family not in OF_FLOATS]


def in_sixteen_bits(case: Case) -> Case:
    """The same with f16 for f32, and results that are rounded to it."""
    ins, outs = (tuple(TensorType(f16, t.shape) for t in types) for types in (case.ins, case.outs))
    kind = case.kind
    if isinstance(kind, Map):
        kind = Map(apply("add", operand(0, f16), operand(1, f16)))
    elif isinstance(kind, Conv | Gemm | Pool | Normalize):
        kind = replace(kind, epilogue=HALF_RELU if kind.epilogue else cast(operand(0, f32), f16))
    return replace(case, kind=kind, ins=ins, outs=outs, error=HALF_ERROR)


@pytest.mark.skipif("vec" not in NATIVE.isas, reason="this machine has no kernels for vectors")
@pytest.mark.parametrize(("id", "family"), FAMILIES, ids=[family.__name__ for _, family in FAMILIES])
def test_odd_sizes(id: str, family: Callable[[int, int, int], Case], tmp_path: Path) -> None:
    """Others than in embedded/test_kernels.py."""
    assert not wrong_odd_sizes(KERNELS[id], family, NATIVE, tmp_path, every=7, first=3)


def wrong_odd_sizes(
    kernel: Kernel,
    family: Callable[[int, int, int], Case],
    target: targets.Target,
    folder: Path,
    every: int,
    first: int = 0,
) -> str:
    """Each so many-th of the combinations of sizes, from the `first` on; 7 leave nearly all sizes in each dimension."""
    chosen = triples()[first::every]
    cases = [case for case in (family(*sizes) for sizes in chosen) if serves(kernel, case, target)]
    assert len(cases) > len(chosen) // 2
    wasm = any("wasm" in flag for flag in target.cflags)  # its stack is small for what is not optimised
    more = ["-Wl,-z,stack-size=8388608"] if wasm else []
    return wrong_results(kernel, target, folder, cases, ["-Og", "-DHARNESS_GUARDS", *more])  # of all the quickest here


def test_every_kernel_for_vectors_is_among_them() -> None:
    assert {id for id, _ in FAMILIES} == {id for id, kernel in KERNELS.items() if kernel.isa == "vec"}
