"""map in vectors along the axis in which the result lies side by side; operands lie so too, or repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import f32
from mccompile.base.tensor import TensorType
from mccompile.expr.ir import Expr, apply, literal, operand
from mccompile.expr.vector_c import refusals, to_vector_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, elementwise_alias, static_views
from mccompile.kernels.loops import Nest
from mccompile.kernels.tiles import Range
from mccompile.kernels.vector_loops import chunks, vector_nest
from mccompile.kernels.vector_tiles import best_lanes, vector_headers, vector_refusal
from mccompile.kernels.work import Units
from mccompile.kinds.map import Map


class VectorLoops(Kernel):
    kind = Map
    isa = "vec"

    def cases(self) -> Sequence[Case]:
        x, y = operand(0, f32), operand(1, f32)
        zero, one = literal(0, f32), literal(1, f32)
        relu = apply("max", x, zero)
        negative = apply("less", x, zero)
        cases = [_case(f"relu_{n}", relu, n) for n in (4, 7, 15, 16, 17, 31, 33, 100)]
        cases += [_case(name, apply(name, x), 33) for name in ("neg", "abs", "floor", "ceil", "trunc", "round_even")]
        cases += [_case(name, apply(name, x), 33) for name in ("exp", "expm1", "tanh", "erf")]
        cases += [_case(name, apply(name, apply("abs", x)), 33) for name in ("sqrt", "log", "log1p")]
        cases += [_case(name, apply(name, x, y), 19, 2) for name in ("add", "sub", "mul", "div", "max", "min")]
        either = apply("xor", negative, apply("not", apply("greater_equal", y, one)))
        cases += [
            _case("select", apply("select", negative, apply("mul", literal(0.1, f32), x), x), 21),
            _case("logic", apply("select", apply("or", either, apply("is_nan", x)), x, y), 18, 2),
            _case("shared", apply("mul", relu, apply("exp", relu)), 17),
        ]
        t, add = TensorType(f32, (2, 19, 3, 5)), Map(apply("add", x, y))
        last = (0, 2, 3, 1)
        for name, repeated in (("rows", (0, 1, 2)), ("channels", (0, 2, 3)), ("scalar", (0, 1, 2, 3))):
            cases.append(Case(f"add_{name}", add, (t, t), (t,), repeated={1: repeated}))
            lasts = {0: last, 1: last}
            case = Case(f"last_{name}", add, (t, t), (t,), permute=lasts, permute_outs={0: last})
            cases.append(replace(case, repeated={1: repeated}))
        return cases

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = vector_refusal(target) or static_views(call) or refusals(call.kind.expressions())
        if reason:
            return No(reason)
        if any(view.buffer.dtype is not f32 for view in (*call.ins, *call.outs)):
            return No("only for 32-bit floats")
        loops = vector_nest([*call.outs, *call.ins])
        if isinstance(loops, str):
            return No(loops)
        alias = {(0, i): 0 for i in range(len(call.ins)) if elementwise_alias(call, i)}
        return Needs(alias=alias, numeric="ulp", blocks=(best_lanes(loops.loops[-1].extent, target),))

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(static(call.outs[0].type.count) * (1 + len(call.ins)) * 1e-10, code=300)

    def headers(self, call: Call) -> frozenset[str]:
        return vector_headers(call)

    def units(self, call: Call) -> Sequence[int]:
        """Rows, or vectors of the only row."""
        loops = vector_nest([*call.outs, *call.ins])
        assert isinstance(loops, Nest)
        if len(loops.loops) > 1:
            return (1,) * loops.loops[0].extent
        return (1,) * -(-loops.loops[0].extent // call.blocks[0])

    def context(self, call: Call) -> Mapping[str, Any]:
        loops = vector_nest([*call.outs, *call.ins])
        assert isinstance(loops, Nest)
        lanes = call.blocks[0]
        row = loops.loops[-1]
        (y,), names = self.parameter_names(call)
        found = []
        outer = [Range.over(loop.counter, loop.count) for loop in loops.loops[:-1]]
        units = Units() if call.workers > 1 and not outer else None
        if call.workers > 1 and outer:
            outer[0] = replace(outer[0], begin="begin", end="end")
        for chunk in chunks(row.counter, row.extent, lanes, units):
            loads = [
                chunk.load(lanes, name, loops.index(number), static(loops.strides[number][-1]))
                for number, name in enumerate(names, 1)
            ]
            lines, value = to_vector_statements(call.kind.expressions()[0], loads, lanes)
            store = chunk.store(lanes, y, loops.index(0), value)
            found.append({"header": chunk.header, "lines": [*lines, store]})
        return {"loops": outer, "chunks": found}

    def label(self, call: Call) -> str:
        names = [name for name in str(call.kind.expressions()[0]).replace("(", " ").split() if name.isidentifier()]
        return "_".join(["map", *names[:2]]) if names else "copy"


def _case(name: str, expr: Expr, count: int, operands: int = 1) -> Case:
    t = TensorType(f32, (count,))
    return Case(name, Map(expr), (t,) * operands, (t,), ranges={0: (-8, 8)})
