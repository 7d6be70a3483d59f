"""Graph IR: operators applied to typed values, each value made once.

Invariants (checked by verify.py): `graph.nodes` is in topological order; a value has one producer, or none when it is
an input or a constant; `value.uses` holds every (node, position) that reads it, in this graph and in regions inside it;
types are what the operators' `infer` says.

`Op` is abstract here: `ops/` has one class per operator, with its attributes as typed fields. Operators are kept in
the form of the newest opset; reading a file brings older forms to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import Field, field
from typing import Any, ClassVar

import numpy as np

from ..base.constant import Constant
from ..base.dims import Dim, Symbol, symbol, upper
from ..base.provenance import Provenance
from ..base.records import dataclass
from ..base.structures import Interface
from ..base.tensor import Shape, TensorType
from .known import known_elements
from .refusals import Bound, Undeclared, bound_flag, unbounded
from .refusals import Invalid as Invalid
from .refusals import Limit as Limit
from .refusals import Refused as Refused
from .refusals import Unsupported as Unsupported

OWN = "mccompile"  # the domain of operators that no model has


@dataclass(frozen=True)
class Fact:
    """What is known of a value: its type, and for small tensors its elements, where they are whole numbers (ints or
    dimensions)."""

    type: TensorType
    value: np.ndarray | None = field(default=None, compare=False)
    constant: Constant | None = field(default=None, compare=False)  # for rules that need floats (the scales of Resize)


@dataclass(frozen=True)
class Site:
    """Where an operator's type rule is asked: facts about its operands, the number of results, its regions.

    `results` are the types that results are known to have otherwise: where a size follows from an operand that is
    computed at run time, what the model declares is what it will be, and a run that makes it something else is refused.
    """

    facts: tuple[Fact | None, ...]
    outputs: int
    regions: tuple[Graph, ...] = ()
    results: tuple[TensorType | None, ...] = ()
    name: str = ""  # an identifier of its own; empty where the results are there already
    limits: tuple[Limit, ...] = ()  # of the results

    def has(self, index: int) -> bool:
        return index < len(self.facts) and self.facts[index] is not None

    def fact(self, index: int) -> Fact:
        fact = self.facts[index] if index < len(self.facts) else None
        if fact is None:
            raise Invalid(f"operand {index} is missing")
        return fact

    def type(self, index: int) -> TensorType:
        return self.fact(index).type

    def shape(self, index: int) -> Shape:
        return self.type(index).shape

    def value(self, index: int) -> np.ndarray | None:
        """Elements known at compile time, as an object array of ints or dimensions; None where they are not."""
        if not self.has(index):
            return None
        fact = self.fact(index)
        if fact.value is None and 0 in fact.type.shape and fact.type.is_static:
            return np.empty(fact.type.static_shape, dtype=object)  # there is nothing to be known
        return fact.value

    def is_known(self, *indices: int) -> bool:
        """Are the elements of these operands, as far as they are present, known at compile time?"""
        return all(not self.has(index) or self.value(index) is not None for index in indices)

    def declared(self, index: int, what: str, bound: Bound | None = None) -> tuple[int, ...]:
        """The shape of result `index`, for operators that must be told it; `what` is the operand it follows from, and
        `bound` what else the user can say."""
        type = self.results[index] if index < len(self.results) else None
        if type is None or not type.is_static:
            otherwise = f", or say how large it can be with {bound_flag(*bound)}" if bound else ""
            raise Undeclared(
                f"{what} is computed at run time, and the model does not declare the shape of the result",
                f"make it a constant of the model or declare the shape (value_info){otherwise}",
                bound,
            )
        return type.static_shape

    def open_shape(self, index: int, what: str, most: Sequence[Dim | None], like: Shape = ()) -> Shape:
        """The shape of a result that follows from an operand computed at run time: as the model declares it, else with
        sizes of this node's own, at most `most` along each axis (None: as the user says, who is told twice `like`)."""
        type = self.results[index] if index < len(self.results) else None
        if type is not None and type.rank == len(most) and (type.is_static or not self.name):
            return type.shape
        limit = self.limits[index] if index < len(self.limits) else Limit()
        said: Sequence[int | None] = limit.declared if len(limit.declared) == len(most) else [None] * len(most)
        dims = list(enumerate(zip(said, most, strict=True)))
        served = limit.shapes and limit.otherwise is not None
        free = [axis for axis, (n, bound) in dims if n is bound is limit.most(axis) is None]
        if free and not served:
            likely = tuple(n or 2 * upper(like[axis]) for axis, (n, _) in dims) if like else (100,)
            self.declared(index, what, (limit.name or "NAME", likely))
        part = "_{}" if len(most) > 1 else ""
        bounds = [limit.shared(len(free)) if axis in free else bound for axis, (_, bound) in dims]
        own = [
            self.size(index, axis, bounds[axis], part=part.format(axis)) if n is None else n for axis, (n, _) in dims
        ]
        return tuple(own)

    def size(self, index: int, axis: int, most: Dim | None, least: int = 0, part: str = "") -> Dim:
        """A size of result `index` that follows from data: a symbol of this node's own, at most `most` and what the
        user says. Where a node has several, `part` tells them apart."""
        type = self.results[index] if index < len(self.results) else None
        if not self.name and type is not None and axis < type.rank:
            return type.shape[axis]
        limit = self.limits[index] if index < len(self.limits) else Limit()
        known = [upper(bound) for bound in (most, limit.most(axis)) if bound is not None]
        if not known and limit.otherwise is not None:
            known.append(limit.otherwise)
        if not known:
            raise unbounded(f"size {axis} of the result follows from data", limit.name or "NAME")
        return symbol(f"n_{self.name or 'size'}{part}", min(least, *known), min(known))

    def known(self, index: int, what: str) -> list[Dim]:
        """The same as a flat list, for operands that must be known at compile time."""
        value = self.value(index)
        if value is None:
            raise Unsupported(
                f"{what} (operand {index}) is computed at run time",
                "make it a constant of the model, or fix the free dimensions it depends on with --dim or --shape",
            )
        return list(value.reshape(-1))

    def constant(self, index: int, what: str) -> np.ndarray:
        """The contents of an operand that must be a constant; for shapes made of floats, never for weights."""
        constant = self.fact(index).constant
        if constant is None:
            raise Unsupported(f"{what} (operand {index}) is computed at run time", "make it a constant of the model")
        return constant.array

    def known_ints(self, index: int, what: str) -> list[int]:
        values = self.known(index, what)
        ints = [int(v) for v in values if isinstance(v, int)]
        if len(ints) != len(values):
            raise Unsupported(f"{what} (operand {index}) depends on a free dimension", "fix it with --dim or --shape")
        return ints


class Op:
    """An operator with its attributes. Subclasses are frozen dataclasses; their fields are the attributes, and an
    operator is called as its class is. What several operators share is `abstract`, and no operator."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # every operator is a dataclass
    name: ClassVar[str] = ""
    domain: ClassVar[str] = ""

    def __init_subclass__(cls, abstract: bool = False) -> None:
        super().__init_subclass__()
        cls.name = "" if abstract else cls.__name__

    def infer(self, site: Site) -> Sequence[Fact]:
        """Types (and values, where they follow) of the results; raises Refused."""
        raise NotImplementedError

    @property
    def qualified_name(self) -> str:
        return f"{self.domain}::{self.name}" if self.domain else self.name


@dataclass(frozen=True)
class Origin:
    """The tensor of the model's file that a value holds. Its axis i is axis `order[i]` of that."""

    name: str
    order: tuple[int, ...]
    type: TensorType  # of the file's tensor


class Value:
    """One tensor: made once, read any number of times."""

    def __init__(self, name: str, fact: Fact, constant: Constant | None = None) -> None:
        self.name = name
        self.fact = fact
        self.constant = constant
        self.producer: Node | None = None
        self.uses: dict[tuple[Node, int], None] = {}  # a set in order of insertion
        self.origin: Origin | None = None  # None: no tensor of the file, or nobody knows which
        self.became: Value | None = None  # what its readers read now

    @staticmethod
    def of_constant(name: str, constant: Constant) -> Value:
        return Value(name, constant_fact(constant), constant)

    @property
    def type(self) -> TensorType:
        return self.fact.type

    def __repr__(self) -> str:
        return f"%{self.name}"


def constant_fact(constant: Constant) -> Fact:
    return Fact(constant.type, known_elements(constant), constant)


class Node:
    """An operator applied to operands; an operand or a result may be absent (None)."""

    def __init__(
        self,
        op: Op,
        inputs: Iterable[Value | None],
        outputs: Iterable[Value | None],
        provenance: Provenance,
        regions: Iterable[Graph] = (),
    ) -> None:
        self.op = op
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self.provenance = provenance
        self.regions = tuple(regions)
        self.right: tuple[object, ...] = ()  # operator and facts for which the types were found to be right
        self.apart = False  # is it kept beside a node that does the same?

    @property
    def present_inputs(self) -> Iterator[Value]:
        return (value for value in self.inputs if value is not None)

    @property
    def present_outputs(self) -> Iterator[Value]:
        return (value for value in self.outputs if value is not None)

    @property
    def output(self) -> Value:
        """The first result, which every operator has."""
        first = self.outputs[0]
        assert first is not None
        return first

    def site(self) -> Site:
        facts = tuple(v.fact if v else None for v in self.inputs)
        return Site(facts, len(self.outputs), self.regions, tuple(v.type if v else None for v in self.outputs))

    def __repr__(self) -> str:
        return f"{self.op.qualified_name}({', '.join(map(str, self.inputs))}) -> {', '.join(map(str, self.outputs))}"


class Graph:
    """Inputs, nodes in order, outputs.

    A region (body of If, Loop, Scan) is a graph that may also read values of the graphs around it.
    """

    def __init__(self, name: str, inputs: Iterable[Value] = (), outputs: Iterable[Value] = ()) -> None:
        self.name = name
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self._nodes: dict[Node, None] = {}
        self.assumptions: dict[str, None] = {}  # what passes concluded from the values of weights; part of the identity
        self.facts_known: frozenset[str] | None = None  # those that code made before relies on: no others are used
        self.updatable = False  # little is concluded from values, so that other ones suit the same code
        self.few_numbers = False  # sums are rescaled by two numbers of each channel where that can be
        self.in_vectors = False  # products of 32 bits take less time than their upper halves
        self.interface: Interface | None = None  # where inputs or outputs are not only tensors
        self.states: dict[str, str] = {}  # what a run leaves for the next one: name of the input -> of the output
        # What inputs that are kept begin with, a constant; None: with zeros, as those of `states` do that are not here.
        self.initial: dict[str, Value | None] = {}
        self.lengths: dict[str, Symbol] = {}  # sizes that states say, which a run measures first: by the input's name
        self.states_of_file: dict[str, str] = {}  # the other way round: those that need no option
        self.assumed: tuple[str, ...] = ()  # what the file does not say, and reading it took for granted
        self.filled_in: frozenset[str] = frozenset()  # constants that an exporter made up, or computed: no parameters
        self.parameters: frozenset[str] = frozenset()  # constants of which the file says that they are
        self.left_in_float: dict[str, str] = {}  # nodes between quantized tensors that stayed floats, and why

    def may_use(self, *facts: str) -> bool:
        """May passes conclude something from these facts about values? Not where code that is there already does
        without."""
        return self.facts_known is None or self.facts_known.issuperset(facts)

    @property
    def nodes(self) -> Iterable[Node]:
        return self._nodes.keys()

    def __len__(self) -> int:
        return len(self._nodes)

    def add(self, node: Node) -> Node:
        """Appends; after inserting out of order call `sort`."""
        for position, value in enumerate(node.inputs):
            if value is not None:
                value.uses[node, position] = None
        for value in node.present_outputs:
            value.producer = node
        self._nodes[node] = None
        return node

    def remove(self, node: Node) -> None:
        """Takes out a node whose results nobody reads."""
        for position, value in enumerate(node.inputs):
            if value is not None:
                del value.uses[node, position]
        for value in node.present_outputs:
            value.producer = None
        for region in node.regions:
            for inner in list(region.nodes):
                region.remove(inner)
        del self._nodes[node]

    def set_input(self, node: Node, position: int, value: Value | None) -> None:
        old = node.inputs[position]
        if old is not None:
            del old.uses[node, position]
        node.inputs[position] = value
        if value is not None:
            value.uses[node, position] = None

    def compute(
        self, op: Op, inputs: Sequence[Value | None], names: Sequence[str], provenance: Provenance
    ) -> list[Value]:
        """The first results of a new node, which are called so."""
        node = Node(op, inputs, [None] * len(names), provenance)
        made = [Value(name, fact) for name, fact in zip(names, op.infer(node.site()), strict=False)]
        node.outputs = list(made)
        self.add(node)
        return made

    def replace(self, old: Value, new: Value) -> None:
        """Lets every reader of `old` (graph outputs included) read `new`, which takes over the name of a graph output.

        Where `new` cannot take it over (it is an input, a constant, or an output itself), the caller must not ask.
        """
        new.origin = new.origin or old.origin
        old.became = new
        for node, position in list(old.uses):
            self.set_input(node, position, new)
        for position, value in enumerate(self.outputs):
            if value is old:
                if new.producer is not None and new not in self.outputs and not is_input(self, new):
                    new.name, old.name = old.name, new.name
                self.outputs[position] = new

    def is_output(self, value: Value) -> bool:
        return any(value is output for output in self.outputs)

    def sort(self) -> None:
        """Stable topological order; values read inside regions count as operands."""
        order: dict[Node, None] = {}
        for start in self._nodes:
            stack = [start]
            while stack:
                node = stack[-1]
                waiting = [p for p in self._producers(node) if p not in order]
                if node in order or not waiting:
                    order.setdefault(stack.pop())
                else:
                    stack.extend(reversed(waiting))
        self._nodes = order

    def _producers(self, node: Node) -> Iterator[Node]:
        for value in reads(node):
            if value.producer is not None and value.producer in self._nodes:
                yield value.producer

    def constants(self) -> list[Value]:
        """Constants read by nodes (regions included) or returned, in order of first use."""
        found: dict[Value, None] = {}
        for node in self._nodes:
            for value in reads(node):
                if value.constant is not None:
                    found.setdefault(value)
        for value in self.outputs:
            if value.constant is not None:
                found.setdefault(value)
        return list(found)

    def values(self) -> Iterator[Value]:
        """Inputs, constants and results of this graph, not of its regions."""
        yield from self.inputs
        yield from self.constants()
        for node in self._nodes:
            yield from node.present_outputs


def reads(node: Node) -> Iterator[Value]:
    """Everything a node reads: its operands, and what its regions read from outside of them (or of constants)."""
    yield from node.present_inputs
    for region in node.regions:
        inside: set[Value] = set(region.inputs)
        for inner in region.nodes:
            yield from (value for value in reads(inner) if value not in inside)
            inside.update(inner.present_outputs)
        yield from (value for value in region.outputs if value not in inside)


def is_input(graph: Graph, value: Value) -> bool:
    return any(value is graph_input for graph_input in graph.inputs)


def all_nodes(graph: Graph) -> Iterator[Node]:
    """Every node, those of regions after the node that holds them."""
    for node in graph.nodes:
        yield node
        for region in node.regions:
            yield from all_nodes(region)


def graphs(graph: Graph) -> Iterator[Graph]:
    """The graph and its regions, at any depth."""
    yield graph
    for node in all_nodes(graph):
        yield from node.regions
