"""How an operator's gradient is written down: as ordinary nodes behind the network.

Invariant: `Operator.gradient` is told the gradient of each result (`of`), and gives one of each operand that is wanted
(`give`), in any shape that broadcasting made of the operand's: what broadcasting repeated is added up here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from ...base.constant import Constant
from ...base.dtypes import i64
from ...base.names import new_name
from ...base.provenance import Provenance
from ...base.tensor import Shape
from ...expr.derivative import NoDerivative, converted, derivative, times
from ...expr.ir import Expr, apply, cast, literal, operand, operands_used, substitute
from ...graph.ir import OWN, Graph, Node, Op, Site, Unsupported, Value, graphs

AT_ONCE = 16  # operands of one expression: as many as fused calls have
FIX = "fix free dimensions with --dim or --shape"
Resolve = Callable[[str, str], Callable[..., Op]]  # the class of an operator by domain and name: `api.resolve`


class Writer:
    """Adds nodes to a graph, under names of their own."""

    def __init__(self, graph: Graph, resolve: Resolve, names: set[str] | None = None) -> None:
        self.graph, self.resolve = graph, resolve
        self.names = {value.name for part in graphs(graph) for value in part.values()} if names is None else names
        self.provenance: Provenance = ()
        self.stem = "learning"

    def op(self, name: str, *inputs: Value | None, results: int = 1, domain: str = "", **attributes: Any) -> Value:
        """The last of so many results of a new node; those before it are left out."""
        return self.node(self.resolve(domain, name)(**attributes), inputs, results)[-1]

    def node(self, operator: Op, inputs: Sequence[Value | None], results: int) -> list[Value]:
        site = Node(operator, inputs, [None] * results, self.provenance).site()
        made = [Value(self.name(f"{self.stem}_{operator.name.lower()}"), fact) for fact in operator.infer(site)]
        self.graph.add(Node(operator, inputs, made, self.provenance))
        return made

    def name(self, text: str) -> str:
        return new_name(text, self.names)

    def constant(self, array: np.ndarray) -> Value:
        return Value.of_constant(self.name(f"{self.stem}_constant"), Constant.of(array))

    def ints(self, numbers: Sequence[int]) -> Value:
        return self.constant(np.array(numbers, np.int64))

    def number(self, value: float, like: Value) -> Value:
        return self.constant(np.array(value, like.type.dtype.numpy))

    def pointwise(self, expr: Expr, *inputs: Value) -> Value:
        """An expression over elements of the operands, which broadcast."""
        return self.op("Pointwise", *inputs, domain=OWN, formula=str(expr))

    def sum(self, x: Value, axes: Sequence[int], keepdims: bool = True) -> Value:
        return self.op("ReduceSum", x, self.ints(axes), keepdims=int(keepdims)) if axes else x

    def mean(self, x: Value, axes: Sequence[int]) -> Value:
        return self.op("ReduceMean", x, self.ints(axes), keepdims=1) if axes else x

    def flat(self, x: Value) -> Value:
        return self.reshape(x, (math.prod(static_shape(x)),))

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        return x if x.type.shape == tuple(shape) else self.op("Reshape", x, self.ints(shape), allowzero=1)

    def expand(self, x: Value, shape: Sequence[int]) -> Value:
        return x if x.type.shape == tuple(shape) else self.op("Expand", x, self.ints(shape))

    def transpose(self, x: Value, perm: Sequence[int]) -> Value:
        return x if list(perm) == list(range(len(perm))) else self.op("Transpose", x, perm=tuple(perm))

    def slice(self, x: Value, axis: int, start: int, count: int) -> Value:
        if (start, count) == (0, x.type.shape[axis]):
            return x
        return self.op("Slice", x, self.ints([start]), self.ints([start + count]), self.ints([axis]))

    def pad(self, x: Value, before: Sequence[int], after: Sequence[int]) -> Value:
        """With zeros; negative pads cut off."""
        return self.op("Pad", x, self.ints([*before, *after])) if any((*before, *after)) else x

    def turned(self, x: Value) -> Value:
        """Matrices transposed."""
        rank = x.type.rank
        return self.transpose(x, [*range(rank - 2), rank - 1, rank - 2])

    def scaled(self, x: Value, factor: float) -> Value:
        return x if factor == 1 else self.op("Mul", x, self.number(factor, x))

    def shared_by_equals(self, x: Value, chosen: Value, of: Value, axes: Sequence[int]) -> Value:
        """The gradient of a largest (smallest) element: all that are equal to it take the same part."""
        dtype = x.type.dtype
        equal = apply("equal", operand(0, dtype), operand(1, dtype))
        mask = self.pointwise(apply("select", equal, literal(1, dtype), literal(0, dtype)), x, chosen)
        part = self.op("Div", of, self.sum(mask, axes))
        return self.op("Mul", mask, part)

    def spread(self, x: Value, axis: int, first: int, count: int, step: int, size: int) -> Value:
        """What a slice undone is: its elements where they were taken from, zeros between them."""
        shape = static_shape(x)
        if count == 0:
            return self.expand(self.number(0, x), (*shape[:axis], size, *shape[axis + 1 :]))
        if step < 0:
            last = self.ints([-1]), self.ints([np.iinfo(np.int64).min]), self.ints([axis]), self.ints([-1])
            x, first = self.op("Slice", x, *last), first + (count - 1) * step
        step = abs(step)
        if step > 1 and count > 1:
            x = self.reshape(x, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
            x = self.pad_axis(x, axis + 1, 0, step - 1)
            x = self.reshape(x, (*shape[:axis], count * step, *shape[axis + 1 :]))
        return self.pad_axis(x, axis, first, size - first - static_shape(x)[axis])

    def pad_axis(self, x: Value, axis: int, before: int, after: int) -> Value:
        return self.pad(x, *([n if a == axis else 0 for a in range(x.type.rank)] for n in (before, after)))

    def fitted(self, x: Value, first: int, before: Sequence[int], sizes: Sequence[int]) -> Value:
        """With zeros before the axes from `first` on (or so much cut off), and as many behind as make these sizes."""
        low, high = [0] * x.type.rank, [0] * x.type.rank
        for axis, (more, size) in enumerate(zip(before, sizes, strict=True), first):
            low[axis], high[axis] = more, size - static_shape(x)[axis] - more
        return self.pad(x, low, high)

    def scattered(self, x: Value, axis: int, places: Value, size: int) -> Value:
        """What a Gather along an axis undone is: elements taken more than once are added up."""
        shape, more = static_shape(x), places.type.rank
        rest = (*shape[:axis], *shape[axis + more :])
        count = math.prod(static_shape(places))
        first = _first_of_run(places, size)
        if first is not None:
            return self.spread(
                self.reshape(x, (*shape[:axis], count, *shape[axis + more :])), axis, first, count, 1, size
            )
        order = [*range(axis, axis + more), *range(axis), *range(axis + more, len(shape))]
        rows = self.reshape(self.transpose(x, order), (count, *rest))
        columns = self.reshape(places, (count, 1))
        if columns.type.dtype is not i64:
            columns = self.op("Cast", columns, to=i64.onnx)
        zeros = self.expand(self.number(0, x), (size, *rest))
        found = self.op("ScatterND", zeros, columns, rows, reduction="add")
        return self.transpose(found, [*range(1, axis + 1), 0, *range(axis + 1, len(rest) + 1)])

    def zeros(self, like: Value) -> Value:
        return self.expand(self.number(0, like), static_shape(like))


class Backward(Writer):
    """One node and the gradients of its results, for `Operator.gradient`."""

    def __init__(self, writer: Writer, node: Node, of: Sequence[Value | None], wanted: frozenset[int]) -> None:
        super().__init__(writer.graph, writer.resolve, writer.names)
        self.forward, self._of, self.wanted = node, of, wanted
        self.provenance = tuple(f"gradient of {name}" for name in node.provenance)
        self.stem = f"{node.output.name}_gradient"
        self.gradients: dict[int, Value] = {}
        self.given: set[int] = set()  # operands whose gradient is known, be it zero
        self.parts: Sequence[Value] = ()  # the results again, made of other nodes
        self.everywhere = False  # which all readers read from now on

    @property
    def site(self) -> Site:
        return self.forward.site()

    def has(self, index: int) -> bool:
        return index < len(self.forward.inputs) and self.forward.inputs[index] is not None

    def input(self, index: int) -> Value:
        value = self.forward.inputs[index]
        assert value is not None
        return value

    def result(self, index: int = 0) -> Value:
        """One that nobody wanted is made from now on."""
        outputs = self.forward.outputs
        outputs.extend([None] * (index + 1 - len(outputs)))
        value = outputs[index]
        if value is None:
            fact = self.forward.op.infer(replace(self.site, outputs=len(outputs)))[index]
            value = outputs[index] = Value(self.name(f"{self.forward.output.name}_result_{index}"), fact)
            value.producer = self.forward
        return value

    @property
    def all_of(self) -> Sequence[Value | None]:
        return self._of

    def of(self, index: int = 0) -> Value:
        """The gradient of a result; zeros where nothing depends on it."""
        found = self._of[index]
        return self.zeros(self.result(index)) if found is None else found

    def shape(self, index: int) -> tuple[int, ...]:
        """Of an operand."""
        return static_shape(self.input(index))

    def wants(self, index: int) -> bool:
        return index in self.wanted

    def depends(self, index: int) -> bool:
        """Does anything depend on a result?"""
        return index < len(self._of) and self._of[index] is not None

    def refuse(self, why: str, fix: str = "") -> NoReturn:
        raise Unsupported(why, fix)

    def instead(self, results: Sequence[Value], everywhere: bool = False) -> None:
        """The gradients are those of the nodes that were just written, which compute the same results; for all readers
        (`everywhere`), where nodes of the forward pass would else compute them a second time."""
        self.parts, self.everywhere = results, everywhere
        self.given.update(self.wanted)

    def nothing(self, *indices: int) -> None:
        """The result does not change with these operands, or in steps."""
        self.given.update(self.wanted.intersection(indices))

    def give(self, index: int, gradient: Value, shape: tuple[int, ...] | None = None) -> None:
        """The gradient of an operand, if it is wanted; `shape` is another one that the operand was brought to."""
        if index in self.wanted:
            self.given.add(index)
            own = self.shape(index)
            self.gradients[index] = self.reshape(self.reduced(gradient, own if shape is None else shape), own)

    def reduced(self, x: Value, shape: tuple[int, ...]) -> Value:
        """Summed over what broadcasting repeated."""
        given = static_shape(x)
        if given == shape:
            return x
        if len(given) < len(shape):
            return self.expand(x, shape)
        more = len(given) - len(shape)
        axes = [a for a, dim in enumerate(given) if a < more or (shape[a - more] == 1 and dim != 1)]
        summed = self.sum(x, axes)
        if len(static_shape(summed)) == len(shape) and summed.type.shape != shape:
            return self.expand(summed, shape)
        return self.reshape(summed, shape)

    def elementwise(self, expr: Expr, positions: Sequence[int]) -> None:
        """Gradients of operands, whose elements the expression has as its operands in the order of `positions`."""
        ins = [self.input(i) for i in positions]
        for number, index in enumerate(positions):
            if self.wants(index):
                try:
                    slope = derivative(expr, number)
                except NoDerivative as function:
                    raise Unsupported(f"{function} has no derivative here") from None
                self.sloped(index, slope, ins)

    def sloped(self, index: int, slope: Expr | None, ins: Sequence[Value]) -> None:
        """Gives the gradient of the result times the slope, an expression over elements of `ins`."""
        if slope is None:
            self.nothing(index)
            return
        of = self.of()
        used = sorted(operands_used(slope))
        if len(used) >= AT_ONCE:
            self.refuse(f"it has {len(used)} operands, and gradients are written for less than {AT_ONCE}")
        places = {i: operand(n, ins[i].type.dtype) for n, i in enumerate(used)}
        dtype = of.type.dtype
        whole = times(operand(len(used), dtype), converted(substitute(slope, places), dtype))
        whole = cast(whole, self.input(index).type.dtype)
        self.give(index, self.pointwise(whole, *(ins[i] for i in used), of) if used or whole.args else of)


def _first_of_run(places: Value, size: int) -> int | None:
    """The first of known places that follow each other, each one element behind the last; None where they do not."""
    if places.constant is None or not places.constant.array.size:
        return None
    known = places.constant.array.astype(np.int64).reshape(-1)
    known = np.where(known < 0, known + size, known)
    return int(known[0]) if (np.diff(known) == 1).all() else None


def static_shape(value: Value) -> tuple[int, ...]:
    shape: Shape = value.type.shape
    if not value.type.is_static:
        raise Unsupported(f"{value.name} is {value.type}: gradients need sizes that are fixed", FIX)
    return tuple(dim for dim in shape if isinstance(dim, int))
