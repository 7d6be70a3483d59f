"""known_ranges: code does not ask for what no element can be.

An index that certainly lies inside is not clamped, a choice that always goes one way is none, and floats among which is
no NaN are compared as numbers. Ranges come from types, positions, and constants (expr/known.py, `Kind.known`). What is
used of a constant is a fact, and init checks it of integers, since accesses rest on them; no constant counts in
`--updatable` code. For code that exists, ranges are those that it relies on, as far as the constants lie inside. Behind
the passes that make constants anew.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from ...base.dims import bounds
from ...base.dtypes import DTYPES, f32, f64
from ...expr.ir import Apply, Expr, Operand, operand, operands_used, rebuild, walk
from ...expr.known import Known, open_ways, union, unknown
from ...kinds.arg_reduce import ArgReduce
from ...kinds.gather import Gather
from ...kinds.map import Map
from ...kinds.reduce import Reduce
from ...program.ir import CONSTANT, TEMPORARY, Buffer, Call, Item, Loop, Program, View, writes
from ...program.ir import walk as walk_items
from ..api import Context

CHECKED = [DTYPES[name] for name in ("i16", "i32", "i64", "u8", "u16", "u32")]  # those that mcc_check.h compares
MOST = 1 << 20  # elements of a constant that are looked at
_LARGEST = 1e30  # in magnitude of floats: sums of them are finite in f32


def known_ranges(program: Program, context: Context) -> None:
    if any(_asks(call) for call in program.calls()):
        ranges = _Ranges(program, context)
        for call in program.calls():
            given = [ranges.of(view) for view in call.ins]
            ranges.simplify(call, given)
            ranges.made(call)
        ranges.keep_asked()


def _asks(call: Call) -> bool:
    if isinstance(call.kind, Gather):
        return not call.kind.in_range
    if isinstance(call.kind, ArgReduce):
        return call.ins[0].buffer.dtype.is_float
    return isinstance(call.kind, (Map, Reduce)) and any(map(_chooses, call.kind.expressions()))


def _chooses(expr: Expr) -> bool:
    return any(isinstance(node, Apply) and node.function == "select" for node in walk(expr))


class _Ranges:
    def __init__(self, program: Program, context: Context) -> None:
        self.program, self.context = program, context
        self.constants: dict[Buffer, Known] = {}
        self.parts: dict[Buffer, list[Known]] = {}  # of those who write a buffer
        self.writers: dict[Buffer, int] = {}
        for item in walk_items(program.body):
            for buffer in _written(item):
                self.writers[buffer] = self.writers.get(buffer, 0) + 1

    def of(self, view: View) -> Known:
        buffer = view.buffer
        if buffer.role == CONSTANT and buffer.overlap is None:
            if buffer not in self.constants:
                self.constants[buffer] = _of_constant(buffer, self.context.training.facts_known)
            return self.constants[buffer]
        parts = self.parts.get(buffer, [])
        all_of_them = buffer.role == TEMPORARY and parts and len(parts) == self.writers[buffer]
        return union(parts) if all_of_them else unknown(buffer.dtype)

    def made(self, call: Call) -> None:
        given = [self.of(view) for view in call.ins]
        found = call.kind.known(given, [view.type for view in call.ins], [view.type for view in call.outs])
        for view, each in zip(call.outs, found, strict=True):
            self.parts.setdefault(view.buffer, []).append(each)

    def simplify(self, call: Call, given: Sequence[Known]) -> None:
        kind, shape = call.kind, call.outs[0].shape
        if isinstance(kind, Gather) and not kind.in_range:
            self.gather(call, kind, given)
        elif isinstance(kind, ArgReduce) and call.ins[0].buffer.dtype.is_float and not given[0].nan:
            if self.rests_on(given[0].of):
                call.kind = replace(kind, only_numbers=True)
        elif isinstance(kind, Map) and _chooses(kind.expr):
            expr, of = open_ways(kind.expr, given, shape)
            if expr != kind.expr and self.rests_on(of):
                kept = sorted(operands_used(expr))
                place = {index: number for number, index in enumerate(kept)}
                expr = rebuild(expr, lambda n: operand(place[n.index], n.dtype) if isinstance(n, Operand) else None)
                call.kind, call.ins = replace(kind, expr=expr), tuple(call.ins[index] for index in kept)
        elif isinstance(kind, Reduce) and _chooses(kind.element):
            element, of = open_ways(kind.element, given[: kind.operands], call.ins[0].shape)
            same = operands_used(element) == operands_used(kind.element)
            if element != kind.element and same and self.rests_on(of):
                call.kind = replace(kind, element=element)

    def gather(self, call: Call, kind: Gather, given: Sequence[Known]) -> None:
        rests = set[Hashable]()
        for axis, dim in zip(kind.axes, call.ins[0].shape, strict=True):
            if axis < 0:
                found = given[-axis]
                if found.low < 0 or found.high >= bounds(dim)[0]:
                    return
                rests |= found.of
        if self.rests_on(rests):
            call.kind = replace(kind, in_range=True)

    def rests_on(self, constants: Iterable[Hashable]) -> bool:
        """May code rely on the ranges of these? Then it does from now on."""
        buffers = sorted((each for each in constants if isinstance(each, Buffer)), key=lambda buffer: buffer.name)
        facts = {buffer: _fact(buffer, self.constants[buffer]) for buffer in buffers}
        training = self.context.training
        if facts and (training.updatable or not all(map(training.may_use, facts.values()))):
            return False
        for buffer, fact in facts.items():
            self.program.assumptions[fact] = None
            if buffer.dtype.is_integer:
                buffer.within = int(self.constants[buffer].low), int(self.constants[buffer].high)
        return True

    def keep_asked(self) -> None:
        """Ranges that code which exists relies on hold for each constant by itself: one that does not hold hides no
        other."""
        for buffer, found in self.constants.items():
            if self.context.training.facts_known and buffer in found.of:
                self.program.assumptions.setdefault(_fact(buffer, found))


def _written(item: Item) -> Iterator[Buffer]:
    """The two buffers that a loop carries a value in change places after every trip, which writes them as well."""
    yield from (view.buffer for view in writes(item))
    if isinstance(item, Loop):
        yield from (buffer for carry in item.carries for buffer in (carry.now, carry.next))


def _of_constant(buffer: Buffer, facts_known: Collection[str] | None) -> Known:
    """Integers that are not negative may be any up to the largest, and floats any of a size in f32; or what code
    that exists relies on."""
    dtype, of = buffer.dtype, frozenset[Hashable]({buffer})
    is_small = buffer.constant is not None and 0 < buffer.constant.array.size <= MOST
    if buffer.constant is None or not is_small or dtype not in (*CHECKED, f32, f64):
        return unknown(dtype)
    array = np.asarray(buffer.constant.array)
    if dtype.is_float:
        found = Known(-_LARGEST, _LARGEST, False, of)
        is_inside = bool(float(np.abs(array).max()) <= _LARGEST)  # not where there is a NaN
    else:
        low, high = int(array.min()), int(array.max())
        asked = _asked(buffer, facts_known or ())
        found = Known(*(asked or (min(low, 0), high)), False, of)
        is_inside = found.low <= low and high <= found.high
    is_asked = facts_known is None or _fact(buffer, found) in facts_known
    return found if is_inside and is_asked else unknown(dtype)


def _asked(buffer: Buffer, facts: Iterable[str]) -> tuple[int, int] | None:
    """The range of a constant's integers that code which exists relies on."""
    asked = re.compile(re.escape(buffer.name) + r" holds values from (-?\d+) to (-?\d+)")
    found = next(filter(None, map(asked.fullmatch, facts)), None)
    return None if found is None else (int(found[1]), int(found[2]))


def _fact(buffer: Buffer, found: Known) -> str:
    if buffer.dtype.is_float:
        return f"{buffer.name} holds finite values, at most {_LARGEST:g} in magnitude"
    return f"{buffer.name} holds values from {int(found.low)} to {int(found.high)}"
