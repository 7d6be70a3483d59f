"""The names that are visible at one place of a model, and what they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from itertools import count

from onnx import AttributeProto, NodeProto

from ..base.names import c_identifier
from ..base.records import dataclass
from ..base.structures import STRUCTURES, Structure
from ..graph.ir import Graph, Value
from .contradictions import KnownType
from .node_checks import is_graph
from .ordering import node_name


class Missing(Enum):
    BROKEN = "could not be made; why has been said"
    ABSENT = "an optional operand of a function that its call leaves out"


Found = Value | Structure[Value] | Missing
ScopedValue = Value | Structure[Value]
FunctionKey = tuple[str, str, str]  # domain, name, overload


@dataclass
class Scope:
    """The names that are visible at one place."""

    graph: Graph
    opsets: Mapping[str, int]
    outer: Scope | None = None
    values: dict[str, Found] = field(default_factory=dict)
    attributes: Mapping[str, AttributeProto] = field(default_factory=dict)  # of the function call being inlined
    prefix: str = ""  # before the names of values made here
    provenance: str = ""  # before the names of nodes; ending in "/", or the whole of it
    functions: tuple[FunctionKey, ...] = ()  # being inlined, outermost first
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # that the file declares, by name
    partly: Mapping[str, tuple[int | None, ...]] = field(default_factory=dict)  # of which it declares some sizes
    said: Mapping[str, KnownType] = field(default_factory=dict)  # the types that it declares, as far as it does
    callers: Mapping[str, str] = field(default_factory=dict)  # in a function: what its caller calls a value
    around: frozenset[str] = frozenset()  # nodes whose bodies this is in, as C calls them

    def find(self, name: str) -> Found | None:
        if not name:
            return Missing.ABSENT
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.outer
        return None

    def known_as(self, name: str) -> tuple[str, ...]:
        """What the user can call a value of this name; the first is the best. A function may be called many times, and
        what decompositions make has names that nobody has seen."""
        if self.functions:
            return (self.callers.get(name) or self.prefix + name,)
        return (name,) if self.outer is None else (name, self.prefix + name)

    def origin(self, node: NodeProto) -> str:
        """The name of a node; of one with bodies, another one than those around it have: counters are called so."""
        inside = self.provenance
        name = inside + node_name(node) if not inside or inside.endswith("/") else inside
        if c_identifier(name) not in self.around or not any(map(is_graph, node.attribute)):
            return name
        return next(each for n in count(2) if c_identifier(each := f"{name}_{n}") not in self.around)


def is_structure(found: object) -> bool:
    return isinstance(found, STRUCTURES)
