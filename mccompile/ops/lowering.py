"""What an operator writes its calls into: from the operands of one graph node to calls and views of a program.

Invariant: every result of the node is bound with `set` exactly once; buffers and calls carry the node's provenance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..base.constant import Constant, encoded
from ..base.dims import Dim, bounds, maximum, upper
from ..base.dtypes import DType, i64, string
from ..base.names import Names
from ..base.provenance import Provenance
from ..base.records import replace
from ..base.tensor import Shape, TensorType, broadcast, dense_strides
from ..expr.ir import Expr, apply, cast, literal, operand, operands_used, size, substitute
from ..graph.ir import Fact, Invalid, Node, Site, Value
from ..kinds.api import Kind
from ..kinds.map import Map
from ..kinds.string_table import StringTable
from ..program.ir import CONSTANT, Buffer, Call, If, Item, Program, Stop, View


class Lowering:
    """Made by the pass `lower` for each node in turn; `views` maps the values made so far."""

    def __init__(
        self,
        program: Program,
        body: list[Item],
        node: Node,
        view_of: Callable[[int], View],
        names: Names,
        lower_region: Callable[[int, list[Item], Sequence[View]], list[View]],
    ) -> None:
        self.program, self.body, self.node = program, body, node
        self._view_of, self._names, self._lower_region = view_of, names, lower_region
        self.results: dict[int, View] = {}
        self.returned: frozenset[Value] = frozenset()  # outputs of the graph
        self.repeats = False  # is this inside of a loop?

    @property
    def provenance(self) -> Provenance:
        return self.node.provenance

    @property
    def site(self) -> Site:
        """Facts about the operands, as the type rule sees them."""
        return self.node.site()

    def has(self, index: int) -> bool:
        return index < len(self.node.inputs) and self.node.inputs[index] is not None

    def input(self, index: int) -> View:
        """Operand `index`."""
        if not self.has(index):
            raise Invalid(f"operand {index} is missing")
        return self._view_of(index)

    def inputs(self) -> list[View]:
        """All operands that are present."""
        return [self._view_of(index) for index in range(len(self.node.inputs)) if self.has(index)]

    def wants(self, index: int) -> bool:
        """Does anybody want result `index`?"""
        return index < len(self.node.outputs) and self.node.outputs[index] is not None

    def is_read(self, index: int) -> bool:
        """Does anybody read result `index`, or is it an output?"""
        value = self.node.outputs[index] if index < len(self.node.outputs) else None
        return value is not None and (bool(value.uses) or value in self.returned)

    def fact(self, index: int) -> Fact:
        """What the type rule said of result `index`."""
        value = self.node.outputs[index]
        assert value is not None
        return value.fact

    def type(self, index: int = 0) -> TensorType:
        return self.fact(index).type

    def set(self, index: int, view: View) -> None:
        """Binds result `index`; a view of an operand will do."""
        self.results[index] = view

    def require(self, dim: Dim) -> None:
        """Refuses sizes for which this would be less than 0: when they are given or found out, or, inside of a region,
        which may never run, when a run comes there."""
        if bounds(dim)[0] >= 0:
            return
        if self.body is self.program.body:
            self.program.not_negative.setdefault(dim)
            return
        wrong = self.map(apply("less", size(dim), literal(0, i64)), [], ())
        why = f"{dim} must not be less than 0 here"
        self.body.append(If(wrong, [Stop(why, self.provenance, "SIZE")], [], self.provenance))

    def require_elements(self, axis: Dim, wanted: Dim) -> None:
        """Refuses sizes for which `wanted` results, if there are any, would come from an axis without elements."""
        self.require(maximum(axis - 1, -wanted))

    # -- making things

    def buffer(self, dtype: DType, shape: Shape, name: str = "") -> Buffer:
        wanted = name or next((v.name for v in self.node.present_outputs), self.node.op.name)
        return Buffer(self._names.take(wanted), dtype, shape, provenance=self.provenance)

    def constant(self, array: np.ndarray, name: str = "constant") -> View:
        """A constant made from attributes or shapes (what comes from weights is an operand already)."""
        contents = Constant.of(array)
        type = contents.type
        if type.dtype is string:
            return self.strings(contents, name)
        return Buffer(self._names.take(name), type.dtype, type.shape, CONSTANT, contents, self.provenance).whole()

    def nothing(self, type: TensorType) -> View:
        """A tensor without elements, whatever its other sizes will be."""
        empty = np.empty([0 if dim == 0 else upper(dim) for dim in type.shape], type.dtype.numpy)
        return replace(self.constant(empty), shape=type.shape, strides=dense_strides(type.shape))

    def strings(self, contents: Constant, name: str) -> View:
        """Constant strings: pointers cannot lie in the blob, so a call makes them, of bytes that do."""
        texts = encoded(contents.array)
        ends = np.cumsum([len(text) for text in texts], dtype=np.uint32)
        joined = np.frombuffer(b"".join(texts) or b"\0", np.uint8)
        ins = [self.constant(ends, f"{name}_ends"), self.constant(joined, f"{name}_bytes")]
        return self.call(StringTable(), ins, contents.type)[0]

    def call(self, kind: Kind, ins: Sequence[View], *types: TensorType) -> tuple[View, ...]:
        """One call with a fresh buffer for each result type; none where no result has an element."""
        if types and all(type.is_static and type.count == 0 and type.dtype is not string for type in types):
            return tuple(map(self.nothing, types))
        outs = tuple(self.buffer(type.dtype, type.shape).whole() for type in types)
        self.body.append(Call(kind, tuple(ins), outs, self.provenance))
        return outs

    def map(self, expr: Expr, ins: Sequence[View], shape: Shape | None = None) -> View:
        """An elementwise computation; operands broadcast to `shape` (or to each other). Those that the expression does
        not read give the shape only."""
        full = broadcast(*(view.shape for view in ins), assume=True) if shape is None else shape
        read = sorted(operands_used(expr))
        if len(read) < len(ins):
            expr = substitute(expr, {old: operand(new, ins[old].buffer.dtype) for new, old in enumerate(read)})
            ins = [ins[old] for old in read]
        return self.call(Map(expr), [self.aligned(view, full) for view in ins], TensorType(expr.dtype, full))[0]

    def aligned(self, view: View, shape: Shape) -> View:
        """The view broadcast to a shape that its own is assumed to suit."""
        wanted = shape[len(shape) - len(view.shape) :]
        own = tuple(1 if dim == 1 else want for dim, want in zip(view.shape, wanted, strict=True))
        return self.seen_as(view, own).broadcast_to(shape)

    def seen_as(self, view: View, shape: Shape) -> View:
        """The view in a shape that agrees with its own: sizes that are known only at run time are checked."""
        own = list(view.shape)
        for axis, (dim, want) in enumerate(zip(view.shape, shape, strict=True)):
            if dim != want and not isinstance(dim, int) and not isinstance(want, int):
                self.require(dim - want)
                self.require(want - dim)
                own[axis] = want
        return replace(view, shape=tuple(own))

    def binary(self, function: str, a: View, b: View) -> View:
        return self.map(apply(function, operand(0, a.buffer.dtype), operand(1, b.buffer.dtype)), [a, b])

    def cast(self, view: View, dtype: DType) -> View:
        if view.buffer.dtype is dtype:
            return view
        return self.map(cast(operand(0, view.buffer.dtype), dtype), [view])

    def copy(self, view: View) -> View:
        """The same elements, dense, in a buffer of their own."""
        return self.map(operand(0, view.buffer.dtype), [view])

    def reshape(self, view: View, shape: Shape) -> View:
        """The same elements in another shape; a copy is made only where strides cannot say it."""
        found = view.reshaped(shape)
        if found is None:
            found = self.copy(view).reshaped(shape)
        if found is None:
            raise Invalid(f"{view.type} cannot be reshaped to {shape}")
        return found

    def result(self, index: int) -> View:
        """A buffer for result `index`, for regions to write."""
        value = self.node.outputs[index]
        assert value is not None
        return self.buffer(value.type.dtype, value.type.shape, value.name).whole()

    def region(self, index: int, body: list[Item], inputs: Sequence[View] = ()) -> list[View]:
        """Lowers a region of the node into `body`, for these views as its inputs; gives the views of its outputs."""
        return self._lower_region(index, body, inputs)
