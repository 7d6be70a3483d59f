"""reduce in vectors: lanes are neighbouring results, or neighbouring elements of one that are combined at the end.

Lanes lie along an axis of the results where operands have elements side by side along one, else along the last of the
reduced axes if they do there. Several vectors are combined at a time:
of more results, or in chains whose ends meet, as each addition waits for the one before. Columns of more elements than
caches hold are combined a few rows at a time, so that memory is read in its order; totals wait in the workspace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import DType, f16, f32, f64, i32
from mccompile.base.tensor import TensorType
from mccompile.codegen.cases import RELU_OF_SUM
from mccompile.codegen.loops import Loop, Nest, index_c
from mccompile.codegen.sums import Level, levels, reduced_nests
from mccompile.codegen.tiles import Range
from mccompile.codegen.traffic import fmas_of, loads_of, operations, traffic
from mccompile.codegen.vector.vector_groups import Groups
from mccompile.codegen.vector.vector_loops import SHORTEST, Chunk, as_floats
from mccompile.codegen.vector.vector_tiles import (
    DOUBLE_LANES,
    TileSize,
    best_lanes,
    lanes_of,
    vector_headers,
    vector_refusal,
)
from mccompile.expr.code import Code
from mccompile.expr.ir import Index, apply, cast, literal, operand, walk
from mccompile.expr.scalar_c import literal_c, load_c, store_c, to_statements
from mccompile.expr.vector_c import NARROW, mask_of, refusal, refusals, to_vector_statements
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
from mccompile.kinds.reduce import Reduce

AT_ONCE = 4  # vectors that are combined independently of each other
PASS, PASSES = 8, 512  # rows that are combined at a time, at least, and how often that is done, at most
FAR = 1 << 18  # bytes of the operands that lie between the first and the last element of a result
ALONG = -1  # in place of the number of a loop over results: lanes lie along the last of the reduced axes


class StridedLanes(Kernel):
    kind = Reduce

    def cases(self) -> Sequence[Case]:
        x, y = operand(0, f32), operand(1, f32)
        square, mean = apply("mul", x, x), apply("div", x, literal(35, f32))
        cases = [_case(f"{how}_{n}", (3, n), (1,), how) for how in ("add", "max", "min", "mul") for n in (4, 17, 100)]
        cases += [_case(f"sum_{n}", (2, n), (1,)) for n in (7, 15, 16, 31, 33, 64, 67)]
        cases += [_case(f"columns_{m}x{n}", (m, n), (0,)) for m, n in ((1, 4), (2, 7), (3, 33), (17, 16), (7, 100))]
        scaled = apply("add", apply("mul", x, y), operand(2, f32))
        distance = apply("abs", apply("sub", x, y))
        pixels = TensorType(f32, (2, 3, 5, 19))
        rows, columns = TensorType(f32, (2, 3, 5, 1)), TensorType(f32, (2, 1, 5, 19))
        wide, total = TensorType(f32, (3, 37)), TensorType(f32, (3, 1))
        pictures = _case("pictures", (2, 19, 5, 7), (2, 3), permute={0: (0, 2, 3, 1)})
        means = Reduce((2, 3), "add", f32, x, mean)
        counted = apply("add", x, cast(operand(1, i32), f32))
        for dtype in NARROW:
            half = Reduce((2, 3), "add", f32, cast(operand(0, dtype), f32), cast(mean, dtype))
            largest = Reduce((2, 3), "max", dtype, operand(0, dtype))
            for name, kind in (("mean", half), ("largest", largest)):
                ins, outs = (TensorType(dtype, (2, 19, 5, 7)),), (TensorType(dtype, (2, 19, 1, 1)),)
                halves = Case(f"{dtype}_{name}", kind, ins, outs)
                cases += [halves, replace(halves, name=f"{dtype}_{name}_of_columns", permute={0: (0, 2, 3, 1)})]
        doubles = [
            replace(case, name=f"f64_{case.name}", **_in_doubles(case))
            for case in (*cases[:12], *cases[17:24], _case("passes", (515, 300), (0,)))
            if isinstance(case.kind, Reduce) and case.kind.accumulator is f32
        ]
        return [
            *cases,
            *doubles,
            pictures,
            replace(pictures, name="means", kind=means),
            replace(pictures, name="apart", kind=means, permute={0: (2, 3, 0, 1)}, permute_outs={0: (1, 0, 2, 3)}),
            _case("planar_pictures", (2, 3, 5, 7), (2, 3)),
            _case("several_axes", (3, 4, 5, 6), (0, 2)),
            _case("middle", (2, 300, 9), (1,)),
            _case("outer_axes", (4, 3, 2, 7), (0, 1, 2)),
            _case("long", (2, 20000), (1,)),
            _case("long_columns", (1000, 5), (0,)),
            _case("passes", (515, 300), (0,)),
            _case("passes_of_several_axes", (2, 300, 70, 7), (1, 3), "max", permute={0: (0, 1, 3, 2)}),
            _case("rows_of_several_axes", (3, 150, 2, 9), (1, 3)),
            replace(_case("squares", (5, 37), (1,)), kind=Reduce((1,), "add", f32, square, apply("sqrt", x))),
            Case("scaled_rows", Reduce((3,), "add", f32, x, scaled), (pixels, rows, rows), (rows,)),
            Case("scaled_columns", Reduce((1,), "max", f32, x, scaled), (pixels, columns, columns), (columns,),
                 permute={1: (3, 2, 1, 0)}, repeated={2: (0, 2)}),
            Case("distances", Reduce((3,), "max", f32, distance, None, 2), (pixels,) * 2, (rows,),
                 repeated={1: (0, 1)}),
            Case("distances_of_columns", Reduce((1,), "add", f32, distance, None, 2), (pixels,) * 2, (columns,),
                 repeated={1: (3,)}),
            Case("halves", Reduce((1,), "add", f32, x, cast(x, f16)), (wide,), (TensorType(f16, (3, 1)),)),
            Case("mixed", Reduce((1,), "add", f32, x, counted), (wide, TensorType(i32, (3, 1))), (total,)),
        ]  # fmt: skip

    def sized_cases(self) -> Sequence[SizedCase]:
        return [totals, totals_of_columns]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind = call.of(Reduce)
        dtype, narrow = _computed_in(kind)
        reason = vector_refusal(target, dtype) or static_views(call) or refusal(kind.element, dtype, narrow)
        if reason:
            return No(reason)
        if kind.accumulator not in (dtype, *narrow):
            return No("only for floats")
        if any(view.buffer.dtype not in (dtype, *narrow) for view in call.ins[: kind.operands]):
            return No("only for operands of the types that it computes in")
        if 0 in call.ins[0].shape or not kind.axes:
            return No("it combines no elements")
        chosen = _lane_loop(call)
        if chosen is None:
            return No("elements are not contiguous, or are too few")
        if chosen != ALONG:
            reason = refusals(kind.expressions()[1:], dtype, narrow)
            ends = (*call.outs, *call.ins[kind.operands :])
            if reason or any(view.buffer.dtype not in (dtype, *narrow) for view in ends):
                return No(reason or "only for floats")
        elif kind.epilogue is not None and any(isinstance(node, Index) for node in walk(kind.epilogue)):
            return No("it needs positions, which are not computed in vectors")
        alias = {(0, i): 0 for i in range(kind.operands, len(call.ins)) if elementwise_alias(call, i)}
        outer, inner = reduced_nests(call)
        lanes = lanes_of(target, dtype) if chosen == ALONG else best_lanes(outer.loops[chosen].extent, target, dtype)
        while chosen == ALONG and lanes > inner.loops[-1].extent:
            lanes //= 2
        passes = _passes(call, outer, inner, chosen)
        row = -(-outer.loops[chosen].extent // lanes) * lanes if passes else 0
        scratch = dtype.nbytes(row)
        return Needs(alias=alias, numeric="ulp", blocks=(lanes, chosen, passes), scratch=scratch, scratch_align=64)

    def cost(self, call: Call, target: Target) -> Cost:
        chosen = _lane_loop(call)
        results, elements = static(call.outs[0].type.count), static(call.ins[0].type.count)
        kind, lanes, machine = call.of(Reduce), call.blocks[0], target.machine
        width = as_floats(lanes, _computed_in(kind)[0])
        each = loads_of(kind.operands, width, target)
        each = max(each, operations(kind.element) / fmas_of(width, target), machine.latency / AT_ONCE)
        # Sums along the lanes are added up at the end; others are stored as they are.
        ends = results * 8 * machine.element if chosen == ALONG else results / lanes * (20 + 2 * machine.latency)
        time = max(ends + elements / lanes * each, traffic((*call.outs, *call.ins), target))
        return Cost(time, code=400 if chosen == ALONG else 500)

    def headers(self, call: Call) -> frozenset[str]:
        return vector_headers(call, _computed_in(call.of(Reduce))[0]) | {"math.h"}

    def units(self, call: Call) -> Sequence[int]:
        return _Printer(call, self.parameter_names(call)).units()

    def context(self, call: Call) -> Mapping[str, Any]:
        return _Printer(call, self.parameter_names(call)).context()

    def label(self, call: Call) -> str:
        kind = call.of(Reduce)
        return f"reduce_{kind.combine}_{prod(static(call.ins[0].shape[axis]) for axis in kind.axes)}"


class _Printer:
    """Loops and C of indices for one call. Counters: i0.. results, r0.. elements of one. Accumulators:
    a<depth>_<vector>, and c<chain>_<vector> in the innermost loop."""

    def __init__(self, call: Call, names: tuple[list[str], list[str]]) -> None:
        self.call, self.kind = call, call.of(Reduce)
        self.lanes, self.chosen, self.passes = call.blocks
        (self.y,), self.names = names
        self.outer, self.inner = reduced_nests(call)
        self.dtype, _ = _computed_in(self.kind)
        self.of, self.along = f"{self.dtype}x{self.lanes}", self.chosen == ALONG
        self.around = [number for number in range(len(self.outer.loops)) if number != self.chosen]
        self.row = self.inner.loops[-1] if self.along else self.outer.loops[self.chosen]
        loops = self.inner.loops
        if self.along:
            loops = (*loops[:-1], Loop(self.row.counter, self.row.extent // self.lanes))
        self.turns = loops[-1].extent if loops else 1
        self.levels = levels(loops, self.kind.combine == "add", self.passes) or [
            Level("r", "0", Code("1"), 1, 0, False)
        ]

    @property
    def groups(self) -> Groups:
        """Results in tiles of several vectors."""
        vectors = min(AT_ONCE, -(-self.row.extent // self.lanes))
        return Groups(TileSize(self.lanes, 1, vectors), self.row.extent)

    def units(self) -> Sequence[int]:
        if self.around:
            return (1,) * self.outer.loops[self.around[0]].extent
        units = Units()
        if not self.along:
            self.groups.headers(self.row.counter, units)
        return units.sizes

    def context(self) -> dict[str, Any]:
        around = [Range(self.outer.loops[number].counter, self.outer.loops[number].extent) for number in self.around]
        shared = self.call.workers > 1
        if shared and around:
            around[0] = replace(around[0], begin="begin", end="end")
        if self.along:
            return {"around": around, "tiles": [{"header": "{", "lines": self.tile(1, self.lanes)}], "passes": []}
        headers = self.groups.headers(self.row.counter, Units() if shared and not around else None)
        sizes = [(vectors, last) for _, _, vectors, last in self.groups.parts()]
        tiles = [{"header": h, "lines": self.tile(*size)} for h, size in zip(headers, sizes, strict=True)]
        passes = zip(headers, sizes, strict=True) if self.passes else ()
        identity = literal_c(self.kind.identity(), self.dtype)
        begun = f"for (mcc_index i = 0; i < {self.groups.padded}; ++i) totals[i] = {identity};"
        return {
            "around": around, "tiles": tiles, "begun": begun, "rows": self.levels[0], "type": self.dtype.compute_c,
            "passes": [{"header": header, "lines": self.one_pass(*size)} for header, size in passes]}  # fmt: skip

    def tile(self, vectors: int, last: int) -> list[str]:
        """So many vectors of results, of which the last has `last` lanes that count, or one result."""
        chunks = self.groups.chunks(vectors, last)
        if self.passes:
            return [*self.waiting(vectors), *self.results(chunks)]
        finish = self.result if self.along else self.results
        return [*self.start("a0", vectors), *self.level(0, chunks), *finish(chunks)]

    def one_pass(self, vectors: int, last: int) -> list[str]:
        """The same vectors, combined with the rows of one pass."""
        kept = [f"mcc_store_{self.of}({self.total(vector)}, a0_{vector});" for vector in range(vectors)]
        return [*self.waiting(vectors), *self.level(1, self.groups.chunks(vectors, last)), *kept]

    def waiting(self, vectors: int) -> list[str]:
        return [f"mcc_{self.of} a0_{vector} = mcc_load_{self.of}({self.total(vector)});" for vector in range(vectors)]

    def total(self, vector: int) -> str:
        return f"totals + {index_c([1], [self.row.counter], vector * self.lanes)}"

    def start(self, name: str, vectors: int) -> list[str]:
        identity = f"mcc_set_{self.of}({literal_c(self.kind.identity(), self.dtype)})"
        return [f"mcc_{self.of} {name}_{vector} = {identity};" for vector in range(vectors)]

    def join(self, into: str, name: str, vectors: int) -> list[str]:
        pairs = [(f"{into}_{vector}", f"{name}_{vector}") for vector in range(vectors)]
        return [f"{a} = mcc_{self.kind.combine}_{self.of}({a}, {b});" for a, b in pairs]

    def level(self, number: int, chunks: Sequence[Chunk]) -> list[str]:
        """One loop of the sums, and what lies in it."""
        level, vectors = self.levels[number], len(chunks)
        total, before = f"a{level.depth}", f"a{level.depth - 1 if level.opens else level.depth}"
        lines = self.start(total, vectors) if level.opens else []
        if number + 1 < len(self.levels):
            header = (
                f"for (mcc_index {level.counter} = {level.first}; {level.counter} < {level.limit}; {level.advance}) {{"
            )
            lines += [header, *self.level(number + 1, chunks), "}"]
        else:
            lines += self.innermost(level, total, chunks)
        if level.opens:
            lines = ["{", *lines, *self.join(before, total, vectors), "}"]
        whole = self.row.extent // self.lanes * self.lanes
        if self.along and level.first == "0" and level.counter.startswith(self.row.counter) and whole < self.row.extent:
            lines += self.left_over(before, whole)
        return lines

    def innermost(self, level: Level, total: str, chunks: Sequence[Chunk]) -> list[str]:
        counter, vectors = level.counter, len(chunks)
        chains = max(1, min(AT_ONCE // vectors, self.turns))
        begin, one = f"mcc_index {counter} = {level.first}", self.step(total, chunks, counter)
        if chains == 1:
            return [f"for ({begin}; {counter} < {level.limit}; ++{counter}) {{", *one, "}"]
        names = [f"c{number}" for number in range(chains)]
        many = [
            line
            for number, name in enumerate(names)
            for line in self.step(name, chunks, f"({counter} + {number})" if number else counter)
        ]
        is_whole = level.first == "0" and self.turns % chains == 0
        rest = [] if is_whole else [f"for (; {counter} < {counter}_end; ++{counter}) {{", *one, "}"]
        return [
            "{",
            f"const mcc_index {counter}_end = {level.end.text};",
            f"{begin};",
            *(line for name in names for line in self.start(name, vectors)),
            f"for (; {counter} + {chains} <= {counter}_end; {counter} += {chains}) {{",
            *many,
            "}",
            *rest,
            *(line for name in names for line in self.join(total, name, vectors)),
            "}",
        ]

    def step(self, total: str, chunks: Sequence[Chunk], position: str) -> list[str]:
        """Every vector is combined with the element at a position of the innermost loop."""
        lines = []
        for vector, chunk in enumerate(chunks):
            loads = [
                self.loaded(chunk, number, *self.place(number, position, vector * self.lanes))
                for number in range(1, 1 + self.kind.operands)
            ]
            lines += ["{", *self.combined(f"{total}_{vector}", loads), "}"]
        return lines

    def combined(self, total: str, loads: Sequence[str]) -> list[str]:
        expr = apply(self.kind.combine, operand(self.kind.operands, self.kind.accumulator), self.kind.element)
        lines, value = to_vector_statements(expr, [*loads, total], self.lanes, dtype=self.dtype)
        return [*lines, f"{total} = {value};"]

    def left_over(self, total: str, whole: int) -> list[str]:
        """The elements at the end of a row that fill no vector, of the last ones that fill one."""
        chunk, known = Chunk("", self.lanes), self.lanes - (self.row.extent - whole)
        operands = range(1, 1 + self.kind.operands)
        loads = [self.loaded(chunk, number, *self.place(number, "0", whole - known)) for number in operands]
        lines, value = to_vector_statements(self.kind.element, loads, self.lanes, dtype=self.dtype)
        inside = ", ".join("0" if lane < known else "-1" for lane in range(self.lanes))
        identity = f"mcc_set_{self.of}({literal_c(self.kind.identity(), self.dtype)})"
        total = f"{total}_0"
        return [
            "{",
            f"const mcc_{mask_of(self.dtype)}x{self.lanes} inside = {{{inside}}};",
            *lines,
            f"const mcc_{self.of} rest = mcc_select_{self.of}(inside, {value}, {identity});",
            f"{total} = mcc_{self.kind.combine}_{self.of}({total}, rest);",
            "}",
        ]

    def loaded(self, chunk: Chunk, number: int, index: str, stride: int) -> str:
        """C of a vector of an operand."""
        return chunk.load(self.lanes, self.names[number - 1], index, stride, self.stored(number), self.dtype)

    def stored(self, number: int) -> DType:
        """The type of the result, which is 0, or of an operand."""
        return (*self.call.outs, *self.call.ins)[number].buffer.dtype

    def place(self, number: int, position: str, further: int) -> tuple[str, int]:
        """C of the index of an operand, and the step from lane to lane; `further` elements beyond along the lanes."""
        strides = [static(stride) for stride in (*self.outer.strides[number], *self.inner.strides[number - 1])]
        counters = [loop.counter for loop in (*self.outer.loops, *self.inner.loops)]
        step = strides[-1] if self.along else strides[self.chosen]
        if self.inner.loops:
            counters[-1] = position
            strides[-1] *= self.lanes if self.along else 1
        return index_c(strides, counters, further * step), step

    def results(self, chunks: Sequence[Chunk]) -> list[str]:
        lines = []
        for vector, chunk in enumerate(chunks):

            def at(number: int, vector: int = vector) -> tuple[str, int]:
                strides = [static(stride) for stride in self.outer.strides[number]]
                counters = [loop.counter for loop in self.outer.loops]
                step = strides[self.chosen]
                return index_c(strides, counters, vector * self.lanes * step), step

            extras = [
                self.loaded(chunk, number, *at(number)) for number in range(1 + self.kind.operands, 1 + len(self.names))
            ]
            ends = self.kind.epilogue or operand(0, self.kind.accumulator)
            made, value = to_vector_statements(ends, [f"a0_{vector}", *extras], self.lanes, dtype=self.dtype)
            index, step = at(0)
            store = chunk.store(self.lanes, self.y, index, value, step, self.stored(0), self.dtype)
            lines += ["{", *made, store, "}"]
        return lines

    def result(self, chunks: Sequence[Chunk]) -> list[str]:
        """All lanes of the only vector combined."""
        how = self.kind.combine
        if how == "add":
            value = f"mcc_sum_{self.of}(a0_0)"
        elif how == "mul":
            value = f"mcc_product_{self.of}(a0_0)"
        else:
            value = f"mcc_{'largest' if how == 'max' else 'smallest'}_{self.of}(a0_0)"
        indices = [self.outer.index(number) for number in range(1 + len(self.names))]
        extras = [
            load_c(view.buffer.dtype, name, index)
            for view, name, index in zip(self.call.ins, self.names, indices[1:], strict=True)
        ]
        made, text = to_statements(
            self.kind.epilogue or operand(0, self.kind.accumulator), ["total", *extras[self.kind.operands :]], [], "u"
        )
        store = store_c(self.call.outs[0].buffer.dtype, self.y, indices[0], text)
        return [f"const {self.dtype.compute_c} total = {value};", *made, store]


def _computed_in(kind: Reduce) -> tuple[DType, Sequence[DType]]:
    """The floats that vectors have, and the narrower ones that may be among them."""
    return (f64, ()) if kind.accumulator is f64 else (f32, NARROW)


def _lane_loop(call: Call) -> int | None:
    """Which loop over results lanes lie along, or ALONG; None where elements lie side by side along none that is long
    enough."""
    outer, inner = reduced_nests(call)
    full = range(1, 1 + call.of(Reduce).operands)
    for number in reversed(range(len(outer.loops))):
        if outer.loops[number].extent >= SHORTEST and all(outer.strides[view][number] in (0, 1) for view in full):
            return number
    if inner.loops and inner.loops[-1].extent >= SHORTEST and all(inner.strides[v - 1][-1] in (0, 1) for v in full):
        return ALONG
    return None


def _passes(call: Call, outer: Nest, inner: Nest, chosen: int) -> int:
    """How many rows are combined at a time; 0: all. Workers share what lies around."""
    if chosen == ALONG or not inner.loops or (call.workers > 1 and len(outer.loops) == 1):
        return 0
    rows, step = inner.loops[0].extent, max(abs(static(strides[0])) for strides in inner.strides)
    step = call.ins[0].buffer.dtype.nbytes(step)
    passes = max(PASS, -(-rows // PASSES))
    return passes if passes < rows and rows * step >= FAR and outer.loops[chosen].extent > SHORTEST * AT_ONCE else 0


def totals(first: int, second: int, last: int) -> Case:
    return _with_epilogue((first, second, last), 2, "add")


def totals_of_columns(first: int, second: int, last: int) -> Case:
    return _with_epilogue((first, second, last), 1, "max")


def _with_epilogue(shape: tuple[int, ...], axis: int, combine: str) -> Case:
    kind = Reduce((axis,), combine, f32, operand(0, f32), RELU_OF_SUM)
    return Case.of_one_type("_".join(map(str, shape)), kind, (shape,), kind.out_shape(shape), extras=1)


def _in_doubles(case: Case) -> dict[str, Any]:
    kind = replace(case.kind, accumulator=f64, element=operand(0, f64))
    return {
        "kind": kind,
        "option": DOUBLE_LANES,
        **{at: tuple(TensorType(f64, t.shape) for t in getattr(case, at)) for at in ("ins", "outs")},
    }


def _case(name: str, shape: tuple[int, ...], axes: tuple[int, ...], combine: str = "add", **options: Any) -> Case:
    kind = Reduce(axes, combine, f32, operand(0, f32))
    return Case(name, kind, (TensorType(f32, shape),), (TensorType(f32, kind.out_shape(shape)),), **options)
