"""normalize in vectors of neighbouring groups: each lane goes through the elements of a group of its own.

For groups whose elements do not lie side by side, but beside those of the next group: channels of a planar image,
columns of a matrix. Results may lie in any order. Short groups whose elements lie apart from those of the next one, as
rows of a few classes do, are turned: each element is loaded once, and held until the result is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import SHORT, f32, f64, u8
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import Loop, Nest, index_c
from mccompile.codegen.sums import grouped, levels
from mccompile.codegen.tiles import Range
from mccompile.codegen.traffic import normalized
from mccompile.codegen.vector.vector_groups import Groups, in_type, measure_headers, vectors_at_once
from mccompile.codegen.vector.vector_loops import SHORTEST, Chunk, as_floats, stored_refusal
from mccompile.codegen.vector.vector_tiles import DOUBLE_LANES, TileSize, best_lanes, vector_refusal
from mccompile.expr.ir import apply, cast, literal, operand
from mccompile.expr.scalar_c import literal_c
from mccompile.expr.vector_c import NARROW, refusals, to_vector_statements
from mccompile.kernels.api import (
    Call,
    Case,
    Cost,
    Kernel,
    Needs,
    No,
    SizedCase,
    Target,
    elementwise_alias,
    static_views,
)
from mccompile.kernels.work import Units
from mccompile.kinds.normalize import MEASURES, Normalize

TURNED = 32  # elements of a group that lies together that are held at most: longer ones fill vectors of their own
HELD = 512  # vectors that are held at most


class GroupLanes(Kernel):
    kind = Normalize

    def cases(self) -> Sequence[Case]:
        first = Normalize((1,), "softmax", f32)
        x = operand(0, f32)
        cases = [_case(f"softmax_{n}", first, (2, 5, n)) for n in (4, 7, 15, 16, 17, 31, 33, 100)]
        cases += [_case(measure, replace(first, measure=measure, epsilon=1e-5), (2, 7, 19)) for measure in MEASURES]
        scaled = apply("add", apply("mul", x, operand(1, f32)), operand(2, f32))
        standard = Normalize((1,), "standardize", f32, 1e-5)
        affine = _case("scaled", replace(standard, epilogue=scaled), (2, 9, 21))
        affine = replace(affine, ins=affine.ins * 3, repeated={1: (0, 2), 2: (0, 2)})
        twice = replace(first, epilogue=apply("mul", x, x))
        turned = {0: (0, 2, 1)}
        for dtype in NARROW:
            t = TensorType(dtype, (2, 5, 21))
            halves = replace(first, epilogue=cast(x, dtype))
            cases.append(Case(f"{dtype}_softmax", halves, (t,), (t,)))
            cases.append(
                Case(f"{dtype}_rms", replace(halves, measure="rms", epsilon=1e-3), (t,), (t,), permute_outs=turned)
            )
        rounded = apply("round_even", apply("mul", operand(0, f32), literal(-9.0, f32)))
        quantized = cast(apply("max", apply("min", rounded, literal(255.0, f32)), literal(0.0, f32)), u8)
        logs = replace(first, measure="log_softmax", epilogue=quantized)
        double = TensorType(f64, (2, 7, 19))
        for measure in MEASURES:
            kind = Normalize((1,), measure, f64, 1e-5)
            plain = Case(f"f64_{measure}", kind, (double,), (double,), option=DOUBLE_LANES)
            cases += [plain, replace(plain, name=f"{plain.name}_rows", kind=replace(kind, axes=(2,)))]
        return [
            *cases,
            affine,
            replace(affine, name="scaled_turned", permute_outs=turned, permute={2: (2, 1, 0)}),
            _case("softmax_with_epilogue", twice, (3, 5, 21)),
            replace(_case("softmax_turned", first, (2, 5, 18)), permute_outs=turned),
            replace(_case("softmax_large", first, (3, 6, 21)), ranges={0: (-3e38, 3e38)}),
            replace(_case("standardize_far", replace(standard, epsilon=1e-3), (2, 35, 5)), ranges={0: (20.0, 20.0)}),
            replace(_case("l2_of_zeros", replace(first, measure="l2"), (2, 3, 18)), ranges={0: (0.0, 0.0)}),
            replace(_case("pictures", replace(standard, axes=(2, 3)), (2, 19, 5, 7)), permute={0: (0, 2, 3, 1)}),
            _case("outer_axes", replace(standard, axes=(0, 1)), (3, 4, 9)),
            _case("long", standard, (1, 900, 6)),
            _case("apart", first, (5, 40, 3)),
            _case("apart_and_long", replace(standard, epsilon=1e-3), (9, 300, 2)),
            _case("only_group_of_lanes", first, (1, 3, 64)),
            *(_case(f"quantized_{n}", logs, (2, 5, n)) for n in (7, 33)),
            *(_case(f"{m}_of_rows", replace(standard, axes=(2,), measure=m), (2, 21, 7)) for m in MEASURES),
            replace(affine, name="scaled_rows", kind=replace(affine.kind, axes=(0, 1))),
            replace(_case("rows_turned", replace(first, axes=(0, 2)), (3, 19, 2)), permute_outs={0: (2, 0, 1)}),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [softmax_of_columns, softmax_of_rows]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind = call.of(Normalize)
        dtype = kind.accumulator
        reason = vector_refusal(target, dtype) or static_views(call)
        reason = reason or refusals(kind.expressions(), dtype, () if dtype is f64 else (*NARROW, *SHORT))
        if reason:
            return No(reason)
        if kind.element is not None:
            return No("its operand has to be computed first")
        if any(dim == 0 for dim in call.outs[0].shape):
            return No("the result is empty")
        chosen = _lane_loop(call)
        if chosen is None:
            return No("groups are not contiguous, or are too few")
        reason = stored_refusal(
            (*call.outs, *call.ins), [strides[chosen] for strides in _nests(call)[0].strides], dtype
        )
        if reason:
            return No(reason)
        alias = {(0, i): 0 for i in range(len(call.ins)) if elementwise_alias(call, i)}
        lanes = best_lanes(_nests(call)[0].loops[chosen].extent, target, dtype)
        at_once = vectors_at_once(lanes, target, dtype)
        if _nests(call)[0].strides[1][chosen] != 1:
            at_once = max(1, min(at_once, HELD // prod(loop.extent for loop in _nests(call)[1].loops)))
        return Needs(alias=alias, numeric="ulp", blocks=(lanes, chosen, at_once))

    def cost(self, call: Call, target: Target) -> Cost:
        outer, inner = _nests(call)
        lanes, chosen, _ = call.blocks
        apart = sum(strides[chosen] not in (0, 1) for strides in outer.strides)
        side = outer.loops[chosen].extent
        rows = prod(loop.extent for loop in outer.loops) // side * -(-side // lanes)
        vectors = prod(loop.extent for loop in inner.loops)
        width = as_floats(lanes, call.of(Normalize).accumulator)
        return Cost(normalized(call, rows, vectors, width, apart, target), code=700)

    def headers(self, call: Call) -> frozenset[str]:
        return measure_headers(call)

    def units(self, call: Call) -> Sequence[int]:
        """Rows of groups, or vectors of the only row."""
        outer, _ = _nests(call)
        around = [loop for number, loop in enumerate(outer.loops) if number != call.blocks[1]]
        if around:
            return (1,) * around[0].extent
        units = Units()
        _tiles(call).headers(outer.loops[call.blocks[1]].counter, units)
        return units.sizes

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, (lanes, chosen, _) = call.of(Normalize), call.blocks
        dtype = kind.accumulator
        outer, inner = _nests(call)
        row = outer.loops[chosen]
        (y,), names = self.parameter_names(call)
        counters = [loop.counter for loop in (*outer.loops, *inner.loops)]
        steps = [static(strides[chosen]) for strides in outer.strides]
        loops = inner.loops or (Loop("r", 1),)
        count = prod(loop.extent for loop in loops)
        turned = steps[1] != 1
        keeps = kind.measure == "softmax" and (turned or (kind.epilogue is None and steps[0] == 1))
        sizes = [prod(loop.extent for loop in loops[number + 1 :]) for number in range(len(loops))]
        held = index_c(sizes, [loop.counter for loop in loops])
        around = [Range(loop.counter, loop.extent) for number, loop in enumerate(outer.loops) if number != chosen]
        units = Units() if call.workers > 1 and not around else None
        if call.workers > 1 and around:
            around[0] = replace(around[0], begin="begin", end="end")

        def vector(number: int, chunk: Chunk) -> dict[str, Any]:
            """The C of one of a tile."""
            places = [
                index_c([*outside, *inside], counters, number * lanes * step)
                for outside, inside, step in zip(outer.strides, inner.strides, steps, strict=True)
            ]
            loads = [
                chunk.load(lanes, name, place, step, view.buffer.dtype, dtype)
                for view, name, place, step in zip(call.ins, names, places[1:], steps[1:], strict=True)
            ]
            lines, value = to_vector_statements(
                kind.epilogue or operand(0, dtype), ["v", *loads[1:]], lanes, dtype=dtype
            )
            place = f"held_{number}[{held}]"
            return {
                "number": number,
                "apart": loads[0],
                "x": place if turned else loads[0],
                "keep": f"{place} = v;" if turned else chunk.store(lanes, y, places[0], "v", 1, dtype, dtype),
                "kept": place if turned else chunk.load(lanes, y, places[0], 1, dtype, dtype),
                "lines": [*lines, chunk.store(lanes, y, places[0], value, steps[0], call.outs[0].buffer.dtype, dtype)],
            }

        parts = _tiles(call)
        found = [
            {"header": header, "vectors": [vector(*each) for each in enumerate(parts.chunks(many, last))]}
            for header, (_, _, many, last) in zip(parts.headers(row.counter, units), parts.parts(), strict=True)
        ]
        return {
            "around": around,
            "tiles": found,
            "inner": loops,
            "levels": levels(loops, blocked=True),
            "measure": kind.measure,
            "keeps": keeps,
            "held": count if turned else 0,
            "count": literal_c(count, dtype),
            "epsilon": literal_c(kind.epsilon, dtype),
            **in_type(dtype, lanes),
        }

    def label(self, call: Call) -> str:
        return f"{call.of(Normalize).measure}_{prod(loop.extent for loop in _nests(call)[1].loops)}"


def _nests(call: Call) -> tuple[Nest, Nest]:
    """Loops over groups and inside one, over the result and all operands."""
    _, outer, inner = grouped(call.of(Normalize).axes, (call.outs[0], *call.ins), call.ins[0])
    return outer, inner


def _tiles(call: Call) -> Groups:
    """The groups that lie side by side, some vectors of them at a time."""
    lanes, chosen, at_once = call.blocks
    return Groups(TileSize(lanes, 1, at_once), _nests(call)[0].loops[chosen].extent)


def _lane_loop(call: Call) -> int | None:
    """The loop over groups along which their elements lie side by side, or the longest one over short groups, if it is
    long enough."""
    outer, inner = _nests(call)
    long = [number for number, loop in enumerate(outer.loops) if loop.extent >= SHORTEST]
    beside = [number for number in long if outer.strides[1][number] == 1]
    most = HELD if inner.loops and inner.strides[1][-1] != 1 else TURNED
    if beside or prod(loop.extent for loop in inner.loops) > most:
        return next(iter(beside), None)
    return max(long, key=lambda number: outer.loops[number].extent, default=None)


def softmax_of_columns(first: int, second: int, last: int) -> Case:
    return _case(f"{first}_{second}_{last}", Normalize((1,), "softmax", f32), (first, second, last))


def softmax_of_rows(first: int, second: int, last: int) -> Case:
    return _case(f"rows_{first}_{second}_{last}", Normalize((2,), "softmax", f32), (first, second, last % TURNED + 1))


def _case(name: str, kind: Normalize, shape: tuple[int, ...]) -> Case:
    dtype = f32 if kind.epilogue is None else kind.epilogue.dtype
    return Case(name, kind, (TensorType(f32, shape),), (TensorType(dtype, shape),))
