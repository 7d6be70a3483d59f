"""normalize in vectors along rows: the elements of a group lie side by side, or in several such rows. An operand whose
rows lie across those of most others is copied first, where targets have caches.

Invariant: each row of a group is summed up on its own, so rounding errors do not grow with the number of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import SHORT, DType, f32, f64, u8
from mccompile.base.tensor import TensorType, dense_strides
from mccompile.codegen.loops import Loop, Nest, index_c, nest
from mccompile.codegen.tiles import Range, epilogue_alias
from mccompile.codegen.traffic import has_traffic, moved, normalized, traffic
from mccompile.codegen.vector.vector_groups import Groups, in_type, joins, measure_headers, vectors_at_once
from mccompile.codegen.vector.vector_loops import SHORTEST, Chunk, as_floats, stored_refusal
from mccompile.codegen.vector.vector_tiles import DOUBLE_LANES, TileSize, best_lanes, vector_refusal
from mccompile.expr.ir import apply, cast, literal, operand
from mccompile.expr.scalar_c import literal_c
from mccompile.expr.vector_c import NARROW, refusals, to_vector_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, SizedCase, Target, static_views
from mccompile.kinds.normalize import MEASURES, Normalize

COPIED = 1  # copying an operand takes as long as one that lies apart
LONGEST = 1 << 14  # elements that are added up before anything else is: so rounding errors stay small
CUT = 256  # the fewest elements of rows that longer ones are cut into


class RowLoops(Kernel):
    kind = Normalize
    branches = "looks for the largest number, and takes powers or roots"

    def cases(self) -> Sequence[Case]:
        last = Normalize((1,), "softmax", f32)
        measures = ("log_softmax", "standardize", "rms", "l1", "l2")
        cases = [_case(f"softmax_{n}", last, (3, n)) for n in (4, 7, 15, 16, 17, 31, 33, 100)]
        cases += [_case(measure, replace(last, measure=measure, epsilon=1e-5), (3, 19)) for measure in measures]
        scaled = apply("add", apply("mul", operand(0, f32), operand(1, f32)), operand(2, f32))
        pictures = Normalize((1, 2, 3), "standardize", f32, 1e-5, scaled)
        channels = _case("pictures", pictures, (2, 7, 3, 5))
        channels = replace(channels, ins=channels.ins * 3, repeated={1: (0, 2, 3), 2: (0, 2, 3)})
        standard = Normalize((2,), "standardize", f32, 1e-5)
        case = _case("scaled", replace(standard, epilogue=scaled), (2, 3, 37))
        twice = replace(last, epilogue=apply("mul", operand(0, f32), operand(0, f32)))
        for dtype in NARROW:
            t, rounded = TensorType(dtype, (3, 21)), cast(operand(0, f32), dtype)
            for measure in ("softmax", "standardize", "l2"):
                kind = replace(last, measure=measure, epsilon=1e-3, epilogue=rounded)
                cases.append(Case(f"{dtype}_{measure}", kind, (t,), (t,)))
            kind = replace(last, measure="standardize", epsilon=1e-3)
            ends = apply("add", apply("mul", rounded, operand(1, dtype)), operand(2, dtype))
            scaled_narrow = Case(f"{dtype}_scaled", replace(kind, epilogue=ends), (t,) * 3, (t,))
            cases.append(replace(scaled_narrow, repeated={1: (0,), 2: (0,)}))
            named = replace(scaled_narrow, name=f"{dtype}_apart")
            cases.append(replace(named, permute={1: (1, 0)}, permute_outs={0: (1, 0)}))
        rounded = apply("round_even", apply("mul", operand(0, f32), literal(-9.0, f32)))
        quantized = cast(apply("max", apply("min", rounded, literal(255.0, f32)), literal(0.0, f32)), u8)
        logs = replace(last, measure="log_softmax", epilogue=quantized)
        # riscv64v has the last of three: QEMU 7.2 asserts where a vfcvt.rtz begins a block of code, as in the first.
        cases += [_case(f"quantized_{n}", logs, (3, n)) for n in (37, 16, 7)]
        double = TensorType(f64, (3, 37))
        scaled_doubles = apply("add", apply("mul", operand(0, f64), operand(1, f64)), literal(0.5, f64))
        for measure in MEASURES:
            kind = Normalize((1,), measure, f64, 1e-5)
            plain = Case(f"f64_{measure}", kind, (double,), (double,), option=DOUBLE_LANES)
            kind = replace(kind, epilogue=scaled_doubles)
            cases += [plain, replace(plain, name=f"{plain.name}_scaled", kind=kind, ins=(double,) * 2)]
        return [
            *cases,
            replace(case, ins=case.ins * 3, repeated={1: (0, 1), 2: (0, 1)}),
            _case("softmax_with_epilogue", twice, (3, 21)),
            replace(_case("softmax_large", last, (3, 21)), ranges={0: (-3e38, 3e38)}),
            replace(_case("standardize_far", replace(standard, epsilon=1e-3), (2, 2, 35)), ranges={0: (20.0, 20.0)}),
            replace(_case("l2_of_zeros", replace(last, measure="l2"), (2, 18)), ranges={0: (0.0, 0.0)}),
            *(
                _case(f"{measure}_in_blocks", replace(last, measure=measure, epsilon=1e-5), (1, n))
                for n, measure in zip((65537, 32003, 20011, 16411, 16417, 40009), MEASURES, strict=True)
            ),
            _case("cut", replace(standard, axes=(1, 2)), (1, 67, 257)),
            _case("two_axes", Normalize((1, 2), "standardize", f32, 1e-5), (2, 3, 5)),
            replace(_case("last_in_memory", last, (2, 19, 3)), permute={0: (0, 2, 1)}, permute_outs={0: (0, 2, 1)}),
            replace(_case("result_apart", last, (3, 19)), permute_outs={0: (1, 0)}),
            replace(channels, name="channels_last", permute={0: (0, 2, 3, 1)}, permute_outs={0: (0, 2, 3, 1)}),
            replace(channels, name="operands_apart", permute={1: (3, 1, 2, 0), 2: (1, 0, 2, 3)}),
            replace(
                case, name="copied", kind=replace(pictures, axes=(0, 1, 2)), ins=case.ins * 3, permute={0: (2, 0, 1)}
            ),
            *(
                replace(channels, name=f"{measure}_of_rows", kind=replace(pictures, measure=measure))
                for measure in MEASURES
            ),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [softmax]

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
        call, copied = _laid(call, target)
        _, inner = _nests(call)
        if not inner.loops or inner.loops[-1].extent < SHORTEST:
            return No("groups are not rows, or too short for vectors")
        if inner.strides[1][-1] != 1:
            return No("elements of a group are not contiguous")
        reason = stored_refusal((*call.outs, *call.ins), [strides[-1] for strides in inner.strides], dtype)
        if reason:
            return No(reason)
        alias = epilogue_alias(call, 0)
        lanes = best_lanes(inner.loops[-1].extent, target, dtype)
        blocks = (lanes, vectors_at_once(lanes, target, dtype))
        return Needs(alias=alias, numeric="ulp", dense=frozenset({0} if copied else ()), blocks=blocks)

    def cost(self, call: Call, target: Target) -> Cost:
        source = call.ins[0]
        call, copied = _laid(call, target)
        _, inner = _nests(call)
        lanes = call.blocks[0]
        apart = sum(strides[-1] not in (0, 1) for strides in inner.strides)
        vectors = prod(loop.extent for loop in inner.loops[:-1]) * -(-inner.loops[-1].extent // lanes)
        rows = static(call.ins[0].type.count) // prod(loop.extent for loop in inner.loops)
        cycles = normalized(call, rows, vectors, as_floats(lanes, call.of(Normalize).accumulator), apart, target)
        if copied:
            cycles += max(moved(call.ins[0], source, target), traffic((call.ins[0], source), target))
        return Cost(cycles, code=600)

    def headers(self, call: Call) -> frozenset[str]:
        return measure_headers(call)

    def units(self, call: Call) -> Sequence[int]:
        outer, _ = _nests(call)
        return (1,) * outer.loops[0].extent if outer.loops else ()

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, (lanes, at_once) = call.of(Normalize), call.blocks
        dtype = kind.accumulator
        outer, inner = _nests(call)
        *rows, row = inner.loops
        (y,), names = self.parameter_names(call)
        counters = [loop.counter for loop in (*outer.loops, *inner.loops)]
        steps = [static(strides[-1]) for strides in inner.strides]
        keeps = kind.measure == "softmax" and kind.epilogue is None and steps[0] == 1

        def vector(number: int, chunk: Chunk) -> dict[str, Any]:
            """The C of one of a tile."""
            places = [
                index_c([*around, *inside], counters, number * lanes * step)
                for around, inside, step in zip(outer.strides, inner.strides, steps, strict=True)
            ]
            loads = [
                chunk.load(lanes, name, place, step, view.buffer.dtype, dtype)
                for view, name, place, step in zip(call.ins, names, places[1:], steps[1:], strict=True)
            ]
            lines, value = to_vector_statements(
                kind.epilogue or operand(0, dtype), ["v", *loads[1:]], lanes, dtype=dtype
            )
            return {
                "number": number,
                "short": chunk.lanes < lanes,
                "x": loads[0],
                "keep": chunk.store(lanes, y, places[0], "v", 1, dtype, dtype),
                "kept": chunk.load(lanes, y, places[0], 1, dtype, dtype),
                "lines": [*lines, chunk.store(lanes, y, places[0], value, steps[0], call.outs[0].buffer.dtype, dtype)],
            }

        parts = Groups(TileSize(lanes, 1, at_once), row.extent)
        blocks, headers = _blocks(row, parts, _longest(dtype))
        found = [
            {"header": header, "vectors": [vector(*each) for each in enumerate(parts.chunks(many, last))]}
            for header, (_, _, many, last) in zip(headers, parts.parts(), strict=True)
        ]
        at_once = max(len(tile["vectors"]) for tile in found)
        rest = row.extent % lanes
        groups = [Range.over(loop.counter, loop.count) for loop in outer.loops]
        if call.workers > 1:
            groups[0] = replace(groups[0], begin="begin", end="end")
        return {
            "outer": groups,
            "rows": [*(Range(loop.counter, loop.extent) for loop in rows), *blocks],
            "tiles": found,
            "at_once": at_once,
            "joins": joins(at_once),
            "short": bool(rest) and kind.measure not in ("rms", "l1", "l2"),
            "inside": ", ".join("-1" if lane < rest else "0" for lane in range(lanes)),
            "measure": kind.measure,
            "keeps": keeps,
            "count": literal_c(prod(loop.extent for loop in inner.loops), dtype),
            "epsilon": literal_c(kind.epsilon, dtype),
            **in_type(dtype, lanes),
        }

    def label(self, call: Call) -> str:
        return f"{call.of(Normalize).measure}_{prod(loop.extent for loop in _nests(call)[1].loops)}"


def _laid(call: Call, target: Target) -> tuple[Call, bool]:
    """The call, and whether its first operand has to be copied so that most others do not lie apart; the call has it
    dense."""
    x = call.ins[0]
    repeats = any(step == 0 and dim != 1 for dim, step in zip(x.shape, x.strides, strict=True))
    if not has_traffic(target) or x.buffer.constant is not None or x.is_dense or repeats:
        return call, False
    dense = replace(call, ins=(replace(x, strides=dense_strides(x.shape), offset=0), *call.ins[1:]))
    copied = _apart(dense) + COPIED < _apart(call)
    return (dense, True) if copied else (call, False)


def _apart(call: Call) -> int:
    """Operands and results whose elements move one by one along the rows of the first operand."""
    _, inner = _nests(call)
    return sum(strides[-1] not in (0, 1) for strides in inner.strides) if inner.loops else 0


def _nests(call: Call) -> tuple[Nest, Nest]:
    """Loops over groups and inside one, over the result and all operands."""
    kind, x, out = call.of(Normalize), call.ins[0], call.outs[0]
    views = (out, *call.ins)
    inside = sorted(kind.axes, key=lambda axis: (-abs(static(x.strides[axis])), axis))
    kept = [axis for axis in range(len(out.shape)) if axis not in kind.axes]
    outer = nest([static(out.shape[a]) for a in kept], [view.permuted(kept) for view in views])
    inner = nest([static(out.shape[a]) for a in inside], [view.permuted(inside) for view in views], prefix="r")
    return outer, _cut(inner, _longest(kind.accumulator))


def _longest(dtype: DType) -> int:
    """Doubles have bits to spare."""
    return LONGEST if dtype is f32 else 1 << 31


def _cut(inner: Nest, longest: int) -> Nest:
    """Longer rows as several of the same length, if they can be divided so."""
    extent = inner.loops[-1].extent if inner.loops else 0
    if extent <= longest:
        return inner
    row = next((extent // n for n in range(-(-extent // longest), extent // CUT + 1) if extent % n == 0), extent)
    if row == extent:
        return inner
    *loops, last = inner.loops
    many, each = replace(last, extent=extent // row), Loop(f"r{len(inner.loops)}", row)
    strides = tuple((*steps[:-1], steps[-1] * row, steps[-1]) for steps in inner.strides)
    return replace(inner, loops=(*loops, many, each), strides=strides)


def _blocks(row: Loop, parts: Groups, longest: int) -> tuple[list[Range], list[str]]:
    """The loop over blocks of a row that is too long and that nothing divides, the last of which may be shorter and
    takes what is left of the row; and C that opens the loop over the tiles of each part, inside of it."""
    if row.extent <= longest:
        return [], parts.headers(row.counter)
    step = parts.size.vectors * parts.size.lanes
    first, end, size = f"{row.counter}_begin", f"{row.counter}_end", longest // step * step
    whole = parts.parts()[0][1]
    then = f"const mcc_index {end} = {first} < {whole - size} ? {first} + {size} : {whole};"
    headers = [Range(row.counter, size, first, end, step).header]
    if row.extent > whole:
        headers.append(f"if ({end} == {whole}) {{\nconst mcc_index {row.counter} = {whole};")
    return [Range(first, whole, step=size, then=then)], headers


def softmax(first: int, second: int, last: int) -> Case:
    return _case(f"{first}_{second}_{last}", Normalize((2,), "softmax", f32), (first, second, last))


def _case(name: str, kind: Normalize, shape: tuple[int, ...]) -> Case:
    dtype = f32 if kind.epilogue is None else kind.epilogue.dtype
    return Case(name, kind, (TensorType(f32, shape),), (TensorType(dtype, shape),))
