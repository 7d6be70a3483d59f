"""map in vectors along the axis in which the result lies side by side; operands lie so too, or repeat. Others
are copied before.

Numbers of 16 bits, and bytes, become floats of 32 bits on the way, but where all are f16 and the target computes in
that: what rounding every operation gives is the same. Doubles are computed in vectors of doubles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import SHORT, DType, bf16, bool_, f16, f32, f64, i32, i64, u64
from mccompile.base.tensor import TensorType, dense_strides
from mccompile.codegen.loops import Nest, memory_order
from mccompile.codegen.map_label import map_label
from mccompile.codegen.tiles import Range
from mccompile.codegen.traffic import has_traffic, in_vectors, moved, operations, traffic
from mccompile.codegen.vector.vector_loops import (
    BLOCK,
    Chunk,
    as_floats,
    chunks,
    elementwise_units,
    far_between,
    in_blocks,
    vector_nest,
)
from mccompile.codegen.vector.vector_tiles import DOUBLE_LANES, best_lanes, vector_headers, vector_refusal
from mccompile.expr.ir import Expr, Operand, apply, cast, literal, operand, walk
from mccompile.expr.vector_c import NARROW, ROUNDED, mask_of, refusal, to_vector_statements
from mccompile.kernels.api import (
    Call,
    Case,
    Cost,
    Kernel,
    Needs,
    No,
    SizedCase,
    Target,
    View,
    elementwise_alias,
    static_views,
)
from mccompile.kernels.work import Units
from mccompile.kinds.map import Map

KNOWN = (*NARROW, *SHORT, *ROUNDED, bool_)  # types of operands besides f32
WIDENED = 4  # operations that make floats of integers or truth values, or the reverse


class VectorLoops(Kernel):
    kind = Map
    branches = ""

    def cases(self) -> Sequence[Case]:
        x, y = operand(0, f32), operand(1, f32)
        zero, one = literal(0, f32), literal(1, f32)
        relu = apply("max", x, zero)
        negative = apply("less", x, zero)
        cases = [_case(f"relu_{n}", relu, n) for n in (4, 7, 15, 16, 17, 31, 33, 100)]
        cases += [_case(name, apply(name, x), 33) for name in ("neg", "abs", "floor", "ceil", "trunc", "round_even")]
        cases += [_case(name, apply(name, x), 33) for name in ("exp", "expm1", "tanh", "erf")]
        cases += [_case(name, apply(name, apply("abs", x)), 33) for name in ("sqrt", "log", "log1p")]
        cases += [
            _case(name, apply(name, x), 33) for name in ("sign", "sin", "cos", "tan", "atan", "sinh", "cosh", "asinh")
        ]
        bounded = apply("div", x, literal(8, f32))
        cases += [_case(name, apply(name, bounded), 33) for name in ("asin", "acos", "atanh")]
        cases.append(_case("acosh", apply("acosh", apply("add", literal(9, f32), x)), 33))
        cases += [_case(name, apply(name, x, y), 19, 2) for name in ("add", "sub", "mul", "div", "max", "min")]
        cases += [_case(name, apply(name, x, y), 19, 2) for name in ("mod", "fmod")]
        cases.append(_case("pow", apply("pow", apply("abs", x), y), 19, 2))
        either = apply("xor", negative, apply("not", apply("greater_equal", y, one)))
        cases += [
            _case("select", apply("select", negative, apply("mul", literal(0.1, f32), x), x), 21),
            _case("logic", apply("select", apply("or", either, apply("is_nan", x)), x, y), 18, 2),
            _case("shared", apply("mul", relu, apply("exp", relu)), 17),
        ]
        for dtype in NARROW:
            a, b, least = operand(0, dtype), operand(1, dtype), literal(0, dtype)
            one = literal(1, dtype)
            silu = apply("mul", a, apply("div", one, apply("add", one, apply("exp", apply("neg", a)))))
            wide = cast(apply("mul", cast(a, f32), apply("add", cast(b, f32), literal(0.1, f32))), dtype)
            named = (
                ("relu", apply("max", apply("add", a, b), least), 2),
                ("silu", silu, 1),
                ("tanh", apply("tanh", a), 1),
                ("select", apply("select", apply("less", a, b), apply("sqrt", apply("abs", a)), b), 2),
                ("wide", wide, 2),
                ("widened", cast(a, f32), 1),
                ("rounded", cast(cast(x, dtype), f32), 1),
                ("narrowed", cast(apply("mul", x, y), dtype), 2),
            )
            cases += [_case(f"{dtype}_{name}", expr, 37, many) for name, expr, many in named]
            cases.append(replace(_case(f"{dtype}_scalar", apply("mul", a, b), 19, 2), repeated={1: (0,)}))
        for dtype in (f32, *NARROW):
            a, b, truth = operand(0, dtype), operand(1, dtype), operand(0, bool_)
            # With 37 elements riscv64v has a vfcvt.rtz that begins a block of code, where QEMU 7.2 asserts.
            cases.append(_case(f"{dtype}_less", apply("less", a, b), 11 if dtype is bf16 else 43, 2))
            cases.append(_case(f"{dtype}_truth", cast(apply("max", a, literal(0, dtype)), bool_), 40))
            cases.append(_case(f"{dtype}_of_truth", apply("add", cast(truth, dtype), b), 37, 2))
        for dtype in SHORT:
            cases += [_case(f"quantize_{dtype}_{n}", _quantized(dtype), n, 3) for n in (16, 37)]
            cases.append(_case(f"kept_{dtype}", _kept(dtype), 37, 3))
            less = apply("sub", cast(operand(0, dtype), i32), cast(operand(2, dtype), i32))
            dequantized = _case(f"dequantize_{dtype}", apply("mul", cast(less, f32), y), 37, 3)
            cases += [dequantized, replace(dequantized, name=f"dequantize_{dtype}_scalar", repeated={1: (0,), 2: (0,)})]
        for dtype in (*SHORT, *ROUNDED):
            share = apply("mul", cast(operand(0, dtype), f32), literal(1 / dtype.high, f32))
            total = apply("add", apply("exp", share), cast(operand(1, dtype), f32))
            cases += [_case(f"{dtype}_to_{to}", cast(operand(0, dtype), to), 37) for to in (f32, *NARROW)]
            cases.append(replace(_case(f"{dtype}_scalar", total, 37, 2), repeated={1: (0,)}))
        cases += [replace(case, option=DOUBLE_LANES) for case in _of_doubles()]
        t, add = TensorType(f32, (2, 19, 3, 5)), Map(apply("add", x, y))
        last = (0, 2, 3, 1)
        masked = Map(apply("select", operand(1, bool_), x, literal(-7, f32)))
        mask = TensorType(bool_, t.shape)
        cases += [
            Case("masked", masked, (t, mask), (t,)),
            Case("masked_rows", masked, (t, mask), (t,), repeated={1: (0, 1, 2)}),
            Case("masked_channels", masked, (t, mask), (t,), repeated={1: (0, 2, 3)}),
        ]
        for name, repeated in (("rows", (0, 1, 2)), ("channels", (0, 2, 3)), ("scalar", (0, 1, 2, 3))):
            cases.append(Case(f"add_{name}", add, (t, t), (t,), repeated={1: repeated}))
            lasts = {0: last, 1: last}
            case = Case(f"last_{name}", add, (t, t), (t,), permute=lasts, permute_outs={0: last})
            cases.append(replace(case, repeated={1: repeated}))
        t = TensorType(f32, (5, 7, 3))
        cases.append(Case("copied", Map(apply("exp", apply("add", x, y))), (t, t), (t,), permute={0: (2, 0, 1)}))
        cases.append(Case("copied_sum", add, (t, t), (t,), permute={0: (2, 0, 1)}))
        half, sum_of = TensorType(f16, t.shape), apply("add", operand(0, f16), operand(1, f16))
        cases.append(Case("copied_halves", Map(sum_of), (half, half), (half,), permute={0: (2, 0, 1)}))
        for first in (8, 11):
            t = TensorType(f32, (first, 256, 5))
            cases.append(Case(f"far_between_{first}", add, (t, t), (t,), permute={1: (1, 0, 2)}))
        return cases

    def sized_cases(self) -> Sequence[SizedCase]:
        return [add]

    def match(self, call: Call, target: Target) -> No | Needs:
        (expr,) = call.kind.expressions()
        dtype = f64 if expr.dtype is f64 else f16 if _in_halves(call, target) else f32
        known = (bool_,) if dtype is f64 else KNOWN
        reason = vector_refusal(target, dtype) or static_views(call) or refusal(expr, dtype, known)
        if reason:
            return No(reason)
        call, copied = _laid(call) if has_traffic(target) else (call, {})
        loops = vector_nest([*call.outs, *call.ins])
        if isinstance(loops, str):
            return No(loops)
        order = memory_order(call.outs[0])
        alias = {(0, i): 0 for i in range(len(call.ins)) if elementwise_alias(call, i, order=order)}
        lanes = best_lanes(loops.loops[-1].extent, target, dtype)
        in_any_order = all(elementwise_alias(call, i) for _, i in alias)
        blocked = in_any_order and far_between(loops, target.machine)
        blocks = (lanes, dtype.bits, *[BLOCK] * blocked)
        return Needs(alias=alias, numeric="ulp", dense=frozenset(copied), blocks=blocks)

    def cost(self, call: Call, target: Target) -> Cost:
        call, copied = _laid(call)
        loops, lanes = vector_nest([*call.outs, *call.ins]), call.blocks[0]
        assert isinstance(loops, Nest)
        row = loops.loops[-1].extent
        rows = static(call.outs[0].type.count) // row
        integers = sum(not view.buffer.dtype.is_float for view in (*call.outs, *call.ins))
        widened = -(-row // lanes) * WIDENED * integers / target.machine.fmas
        if not has_traffic(target):  # functions make floats of these, one by one
            widened += row * 2 * target.machine.element * sum(view.buffer.dtype in (i64, u64) for view in call.ins)
        cycles = in_vectors(call, rows, -(-row // lanes), as_floats(lanes, _computed_in(call)), target, widened)
        for number, source in copied.items():
            copy = call.ins[number]
            cycles += max(moved(copy, source, target), traffic((copy, source), target))
        return Cost(cycles, code=300)

    def headers(self, call: Call) -> frozenset[str]:
        return vector_headers(call, _computed_in(call))

    def units(self, call: Call) -> Sequence[int]:
        return elementwise_units(_laid(call)[0])

    def context(self, call: Call) -> Mapping[str, Any]:
        call, _ = _laid(call)
        loops = vector_nest([*call.outs, *call.ins])
        assert isinstance(loops, Nest)
        lanes, dtype = call.blocks[0], _computed_in(call)
        row = loops.loops[-1]
        (y,), names = self.parameter_names(call)
        found, repeated = [], []
        for number, (name, view) in enumerate(zip(names, call.ins, strict=True), 1):
            if not static(loops.strides[number][-1]):
                load = Chunk("", lanes).load(lanes, name, loops.index(number), 0, view.buffer.dtype, dtype)
                kind = f"{mask_of(dtype)}x{lanes}" if view.buffer.dtype is bool_ else f"{dtype}x{lanes}"
                repeated.append(f"const mcc_{kind} of_{name} = {load};")
        outer = [Range.over(loop.counter, loop.count) for loop in loops.loops[:-1]]
        units = Units() if call.workers > 1 and not outer else None
        if call.workers > 1 and outer:
            outer[0] = replace(outer[0], begin="begin", end="end")
        outer = in_blocks(outer) if call.blocks[2:] else outer
        for chunk in chunks(row.counter, row.extent, lanes, units):
            loads = [
                chunk.load(lanes, name, loops.index(number), 1, view.buffer.dtype, dtype)
                if static(loops.strides[number][-1])
                else f"of_{name}"
                for number, (name, view) in enumerate(zip(names, call.ins, strict=True), 1)
            ]
            lines, value = to_vector_statements(call.kind.expressions()[0], loads, lanes, dtype=dtype)
            store = chunk.store(lanes, y, loops.index(0), value, 1, call.outs[0].buffer.dtype, dtype)
            found.append({"header": chunk.header, "lines": [*lines, store]})
        return {"loops": outer, "repeated": repeated, "chunks": found}

    def label(self, call: Call) -> str:
        return map_label(call)


def _laid(call: Call) -> tuple[Call, Mapping[int, View]]:
    """The call, and which of its operands have to be copied so that vectors go along them; the call has these dense."""
    moves = not any(map(operations, call.kind.expressions()))  # what only moves is a copy itself
    if moves or not isinstance(vector_nest([*call.outs, *call.ins]), str):
        return call, {}
    copied = {
        number: view
        for number, view in enumerate(call.ins)
        if view.buffer.constant is None and not view.is_dense and not _repeats(view)
    }
    dense = {n: replace(view, strides=dense_strides(view.shape)) for n, view in copied.items()}
    return replace(call, ins=tuple(dense.get(n, view) for n, view in enumerate(call.ins))), copied


def _repeats(view: View) -> bool:
    return any(step == 0 and dim != 1 for dim, step in zip(view.shape, view.strides, strict=True))


def _in_halves(call: Call, target: Target) -> bool:
    """Are all numbers f16, and does the target compute in it?"""
    nodes = [node.dtype for node in walk(call.kind.expressions()[0])]
    halves = bool(target.option("half_lanes", 0)) and all(dtype in (f16, bool_) for dtype in nodes)
    return halves and not refusal(call.kind.expressions()[0], f16)


def _computed_in(call: Call) -> DType:
    return {f16.bits: f16, f64.bits: f64}.get(call.blocks[1], f32)


def add(first: int, second: int, last: int) -> Case:
    """An operand is the same along the middle axis."""
    kind, shape = Map(apply("add", operand(0, f32), operand(1, f32))), (first, second, last)
    return Case.of_one_type(f"{first}_{second}_{last}", kind, (shape, shape), shape, repeated={1: (1,)})


def _of_doubles() -> list[Case]:
    x, y, one = operand(0, f64), operand(1, f64), literal(1, f64)
    names = ("neg", "abs", "floor", "ceil", "trunc", "round_even", "exp", "expm1", "tanh", "erf", "sign", "sin", "cos")
    cases = [_case(f"f64_{name}", apply(name, x), 21) for name in (*names, "tan", "atan", "sinh", "cosh", "asinh")]
    cases += [_case(f"f64_{name}", apply(name, apply("abs", x)), 21) for name in ("sqrt", "log", "log1p")]
    eighth = apply("div", x, literal(8, f64))
    cases += [_case(f"f64_{name}", apply(name, eighth), 21) for name in ("asin", "acos", "atanh")]
    cases.append(_case("f64_acosh", apply("acosh", apply("add", literal(9, f64), x)), 21))
    cases += [_case(f"f64_{name}", apply(name, x, y), 19, 2) for name in ("div", "max", "min", "mod", "fmod")]
    cases.append(_case("f64_pow", apply("pow", apply("abs", x), y), 19, 2))
    silu = apply("mul", x, apply("div", one, apply("add", one, apply("exp", apply("neg", x)))))
    masked = apply("select", operand(1, bool_), apply("tanh", x), apply("select", apply("is_nan", x), one, x))
    masks = _case("f64_masked", masked, 43, 2)
    return [
        *(_case(f"f64_silu_{n}", silu, n) for n in (4, 5, 7, 8, 9, 100)),
        *cases,
        masks,
        replace(masks, name="f64_masked_scalar", repeated={1: (0,)}),
        replace(_case("f64_add_scalar", apply("sqrt", apply("abs", apply("add", x, y))), 19, 2), repeated={1: (0,)}),
    ]


def _quantized(dtype: DType) -> Expr:
    """By a scale and a zero point."""
    x, scale, zero = operand(0, f32), operand(1, f32), cast(operand(2, dtype), f32)
    whole = apply("add", apply("round_even", apply("div", x, scale)), zero)
    ends = literal(dtype.low, f32), literal(dtype.high, f32)
    return cast(apply("max", apply("min", whole, ends[1]), ends[0]), dtype)


def _kept(dtype: DType) -> Expr:
    """Quantized and dequantized on the way."""
    less = apply("sub", cast(_quantized(dtype), i32), cast(operand(2, dtype), i32))
    cut = cast(apply("min", apply("max", operand(0, f32), literal(0, f32)), literal(5.5, f32)), dtype)
    return apply("tanh", apply("add", apply("mul", cast(less, f32), operand(1, f32)), cast(cut, f32)))


def _case(name: str, expr: Expr, count: int, operands: int = 1) -> Case:
    dtypes = {node.index: node.dtype for node in walk(expr) if isinstance(node, Operand)}
    ins = tuple(TensorType(dtypes[index], (count,)) for index in range(operands))
    return Case(name, Map(expr), ins, (TensorType(expr.dtype, (count,)),), ranges={0: (-8, 8)})
