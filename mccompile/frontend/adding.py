"""Nodes put into a graph: typed by their operators, with names that nothing else has.

Invariant: a node is added only when its types are known; a size that follows from data has a symbol of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from ..base.constant import Constant
from ..base.dtypes import f32
from ..base.names import Names, c_identifier, new_name
from ..base.structures import Structure, in_order, leaves, named
from ..base.tensor import TensorType
from ..graph.ir import Fact, Invalid, Limit, Node, Refused, Site, Unsupported, Value
from ..ops.api import OnnxNode, Operator, resolve
from ..ops.reshape import Reshape
from ..ops.rules.known_shapes import fits
from ..ops.shape import Shape
from .bounds import Limits
from .counted import counted
from .evaluate import constant_of
from .findings import Misfit, check_bytes
from .scope import Found, Missing, Scope, ScopedValue
from .slots import Writer


class NodeAdder:
    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._computed: dict[Value, Constant | None] = {}
        self._sizes = Names()  # of sizes that follow from data
        self._names: set[str] = set()  # given to values; those of the outermost graph are reserved

    def reserve(self, names: Iterable[str]) -> None:
        self._names.update(names)

    def append(
        self,
        cls: type[Operator],
        onnx_node: OnnxNode,
        outputs: Sequence[str],
        wholes: Sequence[ScopedValue] | None,
        scope: Scope,
    ) -> Sequence[Found]:
        """Adds a node; `wholes` are like its results, where these are known to be sequences and the like."""
        op = cls.from_onnx(onnx_node)
        named_ = [leaves(named(whole, name)) for whole, name in zip(wholes or (), outputs, strict=False)]
        names = [name for part in named_ for name in part] if wholes is not None else outputs
        wanted = len(names) if wholes is not None else onnx_node.outputs
        draft = Node(op, onnx_node.inputs, [None] * wanted, (onnx_node.name,), onnx_node.regions)
        own = self._sizes.take(c_identifier(f"{scope.prefix}{next(filter(None, names), op.name)}"))
        try:
            facts = self._infer(draft, own, names, scope)
        except Invalid as invalid:
            raise Misfit(invalid.why, invalid.fix) from None
        if len(facts) < wanted:
            raise Invalid(f"it has {wanted} results, {op.name} gives {len(facts)}")
        for fact in facts:
            if fact.type.dtype.kind == "complex":
                raise Unsupported(f"its result is {fact.type}, and complex numbers are not supported")
            check_bytes("its result", fact.type)
        draft.outputs = [
            Value(self.unique(result, scope), fact) if result else None
            for result, fact in zip(names, facts, strict=False)
        ]
        made_as = [(value, scope.known_as(name)) for value, name in zip(draft.outputs, names, strict=False) if value]
        self.limits.made(made_as, own)
        draft = self._size(draft, scope)
        scope.graph.add(draft)
        self._know(draft)
        if wholes is None:
            return [value or Missing.ABSENT for value in draft.outputs]
        made = iter(list(draft.present_outputs))
        return [in_order(whole, made) for whole in wholes]

    def put(
        self, op: Operator, inputs: Sequence[Value | None], scope: Scope, origin: str, results: int = 1
    ) -> list[Value]:
        """Adds a node that stands in no file, in front of the one that is read."""
        node = Node(op, inputs, [None] * results, (origin,))
        facts = op.infer(replace(node.site(), name=self._sizes.take(c_identifier(f"{origin}_size"))))
        for fact in facts:
            check_bytes("an operand that it needs", fact.type)
        made = [Value(self.unique(f"{origin}/operand", scope, made_up=True), fact) for fact in facts]
        node.outputs = [*made]
        scope.graph.add(node)
        return made

    def _size(self, node: Node, scope: Scope) -> Node:
        """A sum that is the size of what NonZero gives, taken from there: sizes have to be the same symbol."""
        places = counted(node, scope.graph)
        if places is None:
            return node
        (origin,) = node.provenance
        shape = np.array(node.output.type.static_shape, np.int64)
        (size,) = self.put(Shape(start=1, end=2), [places], scope, origin)
        reshape = Node(Reshape(), [size, self.constant(shape, scope, origin)], [None], (origin,))
        node.output.fact = reshape.op.infer(reshape.site())[0]
        reshape.outputs = [node.output]
        return reshape

    def constant(self, array: np.ndarray, scope: Scope, origin: str) -> Value:
        return Value.of_constant(self.unique(f"{origin}/constant", scope, made_up=True), Constant.of(array))

    def declared_results(
        self, outputs: Sequence[str], scope: Scope
    ) -> tuple[tuple[TensorType | None, ...], tuple[Limit, ...]]:
        """What the model declares of results (their shapes; element types follow from the operator), and what the user
        says of them."""
        shapes = (scope.shapes.get(output) for output in outputs)
        types = tuple(TensorType(f32, shape) if shape is not None else None for shape in shapes)
        known = [(self.limits.of(*scope.known_as(output)), scope.partly.get(output, ())) for output in outputs]
        return types, tuple(replace(limit, declared=sizes) for limit, sizes in known)

    def _know(self, node: Node) -> None:
        """A size that went through floats, as torch's interpolate computes it, beside others that stay free."""
        value = node.outputs[0] if node.op.name == "Cast" and not node.op.domain else None
        if value is not None and value.fact.value is None and fits(value.type):
            constant = constant_of(value, self._computed)
            if constant is not None:
                value.fact = Fact(value.type, Value.of_constant("", constant).fact.value)

    def _infer(self, node: Node, name: str, outputs: Sequence[str], scope: Scope) -> Sequence[Fact]:
        """The type rule. A declared shape that cannot be right is but a wrong comment, where the rule does without."""
        results, limits = self.declared_results(outputs, scope)
        try:
            return self._infer_as(node, name, results, limits, scope)
        except Refused as refused:
            if not any(results) and not any(limit.declared for limit in limits):
                raise
            try:
                return self._infer_as(node, name, (), tuple(replace(limit, declared=()) for limit in limits), scope)
            except Refused:
                raise refused from None

    def _infer_as(
        self, node: Node, name: str, results: tuple[TensorType | None, ...], limits: tuple[Limit, ...], scope: Scope
    ) -> Sequence[Fact]:
        """What it needs to know and does not is computed, if it follows from constants."""

        def site() -> Site:
            return replace(node.site(), results=results, name=name, limits=limits)

        try:
            return node.op.infer(site())
        except Unsupported:
            found = [
                None if value is None or value.constant else constant_of(value, self._computed) for value in node.inputs
            ]
            if not any(found):
                raise
            for position, constant in enumerate(found):
                if constant is not None:
                    operand = self.unique(f"{node.provenance[0]}/operand", scope, made_up=True)
                    node.inputs[position] = Value.of_constant(operand, constant)
            return node.op.infer(site())

    def copy(self, value: Value, name: str, scope: Scope) -> Value:
        """A value of this name that is made in this graph."""
        copy = Value(self.unique(name, scope), Fact(value.type, value.fact.value))
        scope.graph.add(Node(resolve("", "Identity")(), [value], [copy], (name,)))
        return copy

    def writer(self, scope: Scope, origin: str) -> Writer:
        """What puts nodes into a scope's graph."""

        def put(op: Operator, inputs: Sequence[Value | None], results: int) -> list[Value]:
            return self.put(op, inputs, scope, origin, results)

        def home(whole: Structure[Value]) -> Writer:
            outer: Scope | None = scope
            while outer is not None:
                if any(value is whole for value in outer.values.values()):
                    return self.writer(outer, origin)
                outer = outer.outer
            return self.writer(scope, origin)

        return Writer(
            put, lambda array: self.constant(array, scope, origin), lambda v: constant_of(v, self._computed), home
        )

    def unique(self, name: str, scope: Scope, made_up: bool = False) -> str:
        """The name of a new value. Those of the outermost graph stay as they are; others must not collide with any."""
        if scope.outer is None and not scope.functions and not made_up:
            return name
        return new_name(name if made_up else scope.prefix + name, self._names)
