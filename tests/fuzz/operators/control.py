"""If, Loop and Scan, whose bodies use values from outside."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from onnx import GraphProto, helper

from ..builder import FLOATS, INTEGERS, Builder, Value
from .registry import entries, makes

FAMILIES = ("elementwise", "moves", "reductions", "indexing", "products", "windows", "normalizations", "control")
SHARES = (0.28, 0.26, 0.1, 0.1, 0.08, 0.06, 0.06, 0.06)  # of each
MOST_TRIPS = 4
DEEPEST = 2  # bodies in bodies


class Body(Builder):
    """A graph inside another one. Leaves are constants, and what is outside is there to be used."""

    def __init__(self, outer: Builder, own: list[Value]) -> None:
        super().__init__(outer.chance, outer.opset, outer.free)
        self.depth: int = outer.depth + 1 if isinstance(outer, Body) else 1
        self.outer, self.numbers, self.inexact = outer, outer.numbers, outer.inexact
        self.values = [*[v for v in outer.values[-4:] if not v.last], *own]
        self.before = {v.name for v in self.values}
        self.sets = outer.sets

    def input(self, dtype: str, dims: Any, kind: str = "", low: int = 0, high: int = -1) -> Value:
        return self.drawn(dtype, [self.sizes_of(dim)[0] for dim in dims], kind, low, high)

    def grow(self, most: int = 3) -> None:
        found = [entry for entry in entries().values() if entry.opset <= self.opset]
        for _ in range(self.integer(0, most)):
            family = str(self.chance.choice(FAMILIES, p=SHARES))
            if family != "control" or self.depth < DEEPEST:
                self.pick([entry for entry in found if entry.family == family]).put(self)

    def graph(self, inputs: list[Any], outputs: list[Value | str]) -> GraphProto:
        self.outer.constants |= self.constants
        names = [value if isinstance(value, str) else value.name for value in outputs]
        infos = [helper.make_empty_tensor_value_info(name) for name in names]
        made = helper.make_graph(self.nodes, self.outer.name("body"), inputs, infos)
        self.outer.bounds_of_bodies[made.name] = self.bounds
        return made

    def captured(self) -> list[Value]:
        """Everything from outside that the body could use, constants included."""
        own = [Value(name, (array,) * self.sets, True, True) for name, array in self.constants.items()]
        return [*self.outer.values, *own]


def _last(body: Body, x: Value) -> Value | None:
    """A result of the body with type and shapes of x."""
    shapes = [array.shape for array in x.arrays]

    def fits(v: Value) -> bool:
        return v.dtype == x.dtype and [array.shape for array in v.arrays] == shapes and not v.last

    made = [v for v in body.values if v.name not in body.before and fits(v)]
    if made and body.maybe(0.8):
        return body.pick(made[-3:])
    near = [v for v in body.values if fits(v)]
    other = body.pick(near) if near else x
    if x.dtype == "bool":
        return body.node("Xor", [x, other])
    if not (x.is_float or x.is_integer):
        return None
    return body.node(body.pick(["Add", "Sub", "Max"]), [x, other], exact=True)


def _states(g: Builder, count: int) -> list[Value]:
    return [g.any(("float32", "float32", "int32", "int64", "uint8", "float16"), (0, 3)) for _ in range(count)]


def _inner(g: Builder, x: Value, arrays: tuple[np.ndarray, ...] | None = None) -> Value:
    """What a state is called inside."""
    return Value(g.name("s"), arrays or x.arrays, x.exact)


def _info(x: Value, g: Builder, plain: bool = True) -> Any:
    dims: Any = [g.dim_of(x, axis) for axis in range(x.rank)] if plain else None
    return helper.make_tensor_value_info(x.name, helper.np_dtype_to_tensor_dtype(x.arrays[0].dtype), dims)


@makes("If")
def if_(g: Builder, op: str) -> Value | None:
    x = _states(g, 1)[0]
    branches, outside = [], []
    for _ in range(2):
        body = Body(g, [])
        body.values.append(x)
        body.grow()
        last = _last(body, x)
        if last is None or last.name in body.before:
            return None
        branches.append(body.graph([], [last]))
        outside += body.captured()
    then, otherwise = branches
    condition = g.pick([g.input("bool", ()), g.input("bool", (1,))])
    if g.maybe(0.3):
        fits = [v for v in g.values if v.dtype == "bool" and v.is_static and v.size == 1]
        condition = g.pick(fits)
    return g.node(op, [condition], exact=True, captured=_unique(outside), then_branch=then, else_branch=otherwise)


def _row(body: Body, number: Value) -> None:
    """What belongs to a trip, as exporters take it from a table: by Gather, or as a slice of one row."""
    table = body.drawn(body.pick(["float32", "int64", "int8"]), [MOST_TRIPS + 1, body.integer(1, 4)])
    if body.maybe():
        body.node("Gather", [table, number], exact=True, axis=0)
        return
    begin = body.node("Unsqueeze", [number, body.constant([0])], exact=True)
    end = begin and body.node("Add", [begin, body.constant([1])], exact=True)
    if begin and end:
        body.node("Slice", [table, begin, end], exact=True)


def _first_size(g: Builder) -> Value | None:
    """How long some tensor is, which may be free."""
    size = g.node("Shape", [g.any((*FLOATS, *INTEGERS), (1, 4))], start=0, end=1) if g.opset >= 15 else None
    return size and g.node("Squeeze", [size])


@makes("Loop")
def loop(g: Builder, op: str) -> Value | None:
    states = _states(g, g.integer(1, 2))
    trips = g.integer(0, MOST_TRIPS)
    inner = [_inner(g, x) for x in states]
    counter, going = g.name("i"), g.name("going")
    number = Value(counter, (np.array(1, np.int64),) * g.sets, True)
    body = Body(g, [*inner, number])
    if body.maybe(0.4):
        _row(body, number)
    body.grow()
    lasts = [_last(body, x) for x in inner]
    if any(last is None or last.name in {*body.before, *(v.name for v in inner)} for last in lasts):
        return None
    kept = body.node("Identity", [Value(going, (np.array(True),) * g.sets, True)])
    if body.maybe(0.3):
        kept = body.node("Less", [number, body.constant(g.integer(0, 3))])
    made = [v for v in body.values if v.name not in body.before and not v.last and v is not kept]
    scanned = [body.pick(made)] if made and body.maybe(0.5) else []
    if scanned:  # a result of its own: one name may not be two results
        scanned = [v for v in [body.node("Identity", scanned, exact=True)] if v]
    infos = [
        helper.make_tensor_value_info(counter, 7, [] if g.maybe(0.85) else [1]),
        helper.make_tensor_value_info(going, 9, []),
        *(_info(x, g) for x in inner),
    ]
    if kept is None or infos[0].type.tensor_type.shape.dim:
        infos[0] = helper.make_tensor_value_info(counter, 7, [])
    if kept is None:
        return None
    distinct = list(itertools.chain([kept], lasts, scanned))
    if len({v.name for v in distinct if v}) < len(distinct):
        return None
    graph = body.graph(infos, [v for v in distinct if v])
    count, follows = g.constant(trips), True
    if g.maybe(0.3):
        size = _first_size(g) if g.maybe(0.5) else None
        count, follows = size or g.input("int64", (), "integer", 0, 3), size is not None
    if not follows and scanned:
        return None  # its size would follow from data
    found = g.nodes_(
        op,
        [count, g.constant(True, "bool"), *states],  # the reference takes none for false
        len(states) + len(scanned),
        exact=False,
        captured=_unique(body.captured()),
        body=graph,
        last=False,
    )
    return g.pick(found) if found else None


@makes("Scan")
def scan(g: Builder, op: str) -> Value | None:
    x = g.any(("float32", "float32", "int32", "float16"), (1, 3))
    if not all(len(array) for array in x.arrays) or not all(d is not None for d in (g.dims_of(x) or (None,))):
        return None
    dims = [d for d in g.dims_of(x) or ()][1:]
    state = g.leaf(x.dtype, dims)
    rows = Value(g.name("row"), tuple(array[0] for array in x.arrays), x.exact)
    inner = _inner(g, state)
    body = Body(g, [inner, rows])
    body.grow()
    last = body.node("Add", [inner, rows], exact=True)
    made = [v for v in body.values if v.name not in body.before and not v.last]
    out = body.node("Identity", [body.pick(made)], exact=True) if made else None
    if last is None or out is None:
        return None
    graph = body.graph([_info(inner, g), _info(rows, g)], [last, out])
    found = g.nodes_(
        op,
        [state, x],
        2,
        captured=_unique(body.captured()),
        body=graph,
        num_scan_inputs=1,
        scan_input_directions=[g.integer(0, 1)],
        scan_output_directions=[g.integer(0, 1)],
    )
    return g.pick(found) if found else None


def _unique(values: list[Value]) -> list[Value]:
    return list({value.name: value for value in values}.values())
