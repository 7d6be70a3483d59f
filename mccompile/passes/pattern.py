"""Declarative rewriting: a rule is a pattern, a condition and a function that builds the replacement.

    x, one = AnyValue("x"), ConstantOperand("one")
    Rule("multiply_by_one", ResultOf("Mul", x, one, either_order=True), build=lambda m, make: m["x"], when=is_one)

Rules are tried at every node until none fits any more; a rewrite puts only the nodes near it back on the list, so a
pass takes time in proportion to the graph. Invariants: the result has the type of what it replaces, keeps its name, and
carries the provenance of all nodes that it replaces; names of graph outputs never change. The order is deterministic.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace

import numpy as np

from ..base.constant import Constant
from ..base.errors import InternalError
from ..base.names import new_name
from ..base.provenance import Provenance, merge
from ..base.records import dataclass
from ..graph.ir import Graph, Node, Op, Value, graphs
from ..ops.api import OWN, operator_names


@dataclass(frozen=True)
class AnyValue:
    """Any value."""

    name: str


@dataclass(frozen=True)
class ConstantOperand:
    """A constant."""

    name: str


@dataclass(frozen=True)
class Number:
    """A constant with one element, about this number. That it was looked at is recorded with the rewrite."""

    value: float


@dataclass(frozen=True)
class OptionalOperand:
    """An operand that may be absent; then its name is not bound."""

    pattern: Pattern


@dataclass(frozen=True, init=False)
class FirstOf:
    """The first of several patterns that fits."""

    patterns: tuple[Pattern, ...]

    def __init__(self, *patterns: Pattern) -> None:
        object.__setattr__(self, "patterns", patterns)


@dataclass(frozen=True, init=False)
class ResultOf:
    """The first result of a node with this operator, whose other results nobody reads."""

    operators: tuple[str, ...]
    operands: tuple[Pattern, ...]
    name: str
    either_order: bool  # of two operands
    read_once: bool  # nobody else reads it: the node goes away when it is replaced
    rest: bool  # further operands are not looked at

    def __init__(
        self,
        operators: str,
        *operands: Pattern,
        name: str = "",
        either_order: bool = False,
        read_once: bool = False,
        rest: bool = False,
    ) -> None:
        """`operators`: one name or several, separated by blanks; `name` gives access to the node."""
        names = tuple(operators.split())
        if unknown := sorted(set(names) - operator_names()):
            raise InternalError(f"a pattern is for {', '.join(unknown)}, which is not an operator")
        object.__setattr__(self, "operators", names)
        object.__setattr__(self, "operands", operands)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "either_order", either_order)
        object.__setattr__(self, "read_once", read_once)
        object.__setattr__(self, "rest", rest)


Pattern = AnyValue | ConstantOperand | Number | OptionalOperand | FirstOf | ResultOf
NEAR, NEAR_IN_HALF = 1e-4, 1e-3  # how far a constant may be off a Number, relative; exporters round


@dataclass
class Match:
    """What a pattern was found to stand for."""

    root: Node
    values: dict[str, Value] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    matched: list[Node] = field(default_factory=list)
    numbers: dict[Value, float] = field(default_factory=dict)  # constants that were found to be these

    def copy(self) -> Match:
        return Match(self.root, dict(self.values), dict(self.nodes), list(self.matched), dict(self.numbers))

    def become(self, other: Match) -> None:
        found = other.copy()
        self.values, self.nodes, self.matched, self.numbers = found.values, found.nodes, found.matched, found.numbers

    def __getitem__(self, name: str) -> Value:
        return self.values[name]

    def get(self, name: str) -> Value | None:
        return self.values.get(name)

    def node(self, name: str) -> Node:
        return self.nodes[name]

    def array(self, name: str) -> np.ndarray:
        """The contents of a ConstantOperand."""
        constant = self.values[name].constant
        assert constant is not None
        return constant.array

    @property
    def provenance(self) -> Provenance:
        """Of all nodes in the match, in the order of computation."""
        return merge(*(node.provenance for node in reversed(self.matched)))


@dataclass(frozen=True)
class Rule:
    name: str
    pattern: ResultOf
    build: Callable[[Match, Maker], Value | None]  # the value to read instead; None: it does not fit after all
    when: Callable[[Match], bool] = lambda match: True


class Maker:
    """Makes the nodes and constants of a replacement. `whole` is the graph that all others are regions of."""

    def __init__(self, graph: Graph, names: set[str], whole: Graph) -> None:
        self.graph, self._names, self.whole = graph, names, whole
        self._taken: list[str] = []  # names, for this replacement
        self.match: Match
        self.made: list[Node] = []
        self.facts: list[str] = []  # that hold for this replacement
        self.defined: set[Value] = set()  # constants that are the same whatever the model's contain

    def node(self, op: Op, *inputs: Value | None, like: Value | None = None) -> Value:
        """The first result of a new node; of the type of `like` where that does not follow from the operands."""
        root = self.match.root
        draft = Node(op, inputs, [None], self.match.provenance)
        site = draft.site() if like is None else replace(draft.site(), results=(like.type,))
        fact = op.infer(site)[0]
        result = Value(self._name(root.output.name), fact)
        draft.outputs = [result]
        self.made.append(self.graph.add(draft))
        return result

    def constant(self, array: np.ndarray, name: str) -> Value:
        return Value.of_constant(self._name(name), Constant.of(array))

    def definite(self, array: np.ndarray, name: str) -> Value:
        """A constant that follows from definitions alone; that a rule looks at it is worth no note."""
        made = self.constant(array, name)
        self.defined.add(made)
        return made

    def used(self, fact: str) -> None:
        """Notes what was concluded from the contents of constants; nothing comes of the replacement where that must
        not be."""
        self.facts.append(fact)

    def begin(self, match: Match) -> None:
        self.match, self.made, self.facts, self._taken = match, [], [], []

    def undo(self) -> None:
        """Nothing is left of it, so what was tried in vain changes no name of what comes."""
        for made in reversed(self.made):
            self.graph.remove(made)
        self._names.difference_update(self._taken)

    def _name(self, text: str) -> str:
        name = new_name(text, self._names)
        self._taken.append(name)
        return name


def rewrite(graph: Graph, rules: Sequence[Rule]) -> int:
    """Applies the rules to the graph and its regions until nothing fits; how often that was."""
    names = {value.name for part in graphs(graph) for value in part.values()}
    return sum(_Rewriting(part, rules, names, graph).run() for part in list(graphs(graph)))


class _Rewriting:
    def __init__(self, graph: Graph, rules: Sequence[Rule], names: set[str], whole: Graph) -> None:
        self.graph, self.maker, self.whole = graph, Maker(graph, names, whole), whole
        self.rules: dict[str, list[Rule]] = {}
        for rule in rules:
            for operator in rule.pattern.operators:
                self.rules.setdefault(operator, []).append(rule)
        self.own = set(graph.nodes)
        self.applied: Counter[str] = Counter()

    def run(self) -> int:
        waiting = deque(self.graph.nodes)
        listed = set(waiting)
        limit = 20 * len(waiting) + 100
        while waiting:
            node = waiting.popleft()
            listed.discard(node)
            if node not in self.own:
                continue
            for near in self.rewrite(node):
                if near not in listed and near in self.own:
                    listed.add(near)
                    waiting.append(near)
            if self.applied.total() > limit:
                rule, count = self.applied.most_common(1)[0]
                raise InternalError(f"rewriting does not come to an end: rule {rule} was applied {count} times")
        if self.applied:
            self.graph.sort()
        return self.applied.total()

    def rewrite(self, node: Node) -> Iterator[Node]:
        """Applies the first rule that fits; gives the nodes that should be looked at again."""
        for rule in self.rules.get(node.op.name, ()):
            if node.op.domain or node.regions or not node.outputs or node.outputs[0] is None:
                continue
            for match in self.matches(rule.pattern, node):
                if not rule.when(match):
                    continue
                self.maker.begin(match)
                new = rule.build(match, self.maker)
                for value, number in match.numbers.items():
                    if value not in self.maker.defined:
                        self.maker.used(f"{value.name} is {number:g}")
                may_use = self.whole.may_use(*self.maker.facts)
                if new is not None and may_use and self.may_replace(node.output, new):
                    self.applied[rule.name] += 1
                    self.whole.assumptions.update(dict.fromkeys(self.maker.facts))
                    self.own.update(self.maker.made)
                    yield from self.maker.made
                    yield from self.replace(rule, node.output, new)
                    return
                self.maker.undo()

    def may_replace(self, old: Value, new: Value) -> bool:
        """An output can only become a value that is made in this graph and not an output already."""
        if not self.graph.is_output(old):
            return True
        return (new.producer in self.own or new.producer in self.maker.made) and not self.graph.is_output(new)

    def replace(self, rule: Rule, old: Value, new: Value) -> Iterator[Node]:
        if new.type != old.type:
            raise InternalError(f"rule {rule.name} makes {new.type} out of {old} of type {old.type}")
        name = old.name
        readers = [node for node, _ in old.uses]
        if new.fact.value is None and old.fact.value is not None:
            new.fact = replace(new.fact, value=old.fact.value)
        self.graph.replace(old, new)
        if new.name != name and new.producer in self.maker.made:
            new.name, old.name = old.name, new.name
        yield from readers
        if new.producer is not None:
            yield new.producer
        assert old.producer is not None
        yield from self.remove_dead(old.producer)

    def remove_dead(self, start: Node) -> Iterator[Node]:
        """Takes out a node that nobody needs, and those that nobody needs then; gives those that lost a reader."""
        stack = [start]
        while stack:
            node = stack.pop()
            if node not in self.own or any(v.uses or self.graph.is_output(v) for v in node.present_outputs):
                continue
            operands = list(node.present_inputs)
            self.graph.remove(node)
            self.own.discard(node)
            for value in operands:
                if value.producer is not None:
                    yield value.producer
                    stack.append(value.producer)
                if len(value.uses) == 1:  # its last reader may fit rules now that ask for that
                    yield next(iter(value.uses))[0]

    # -- matching

    def matches(self, pattern: ResultOf, node: Node) -> Iterator[Match]:
        for operands in _orders(pattern, node):
            match = Match(node)
            if self.fits_node(pattern, node, operands, match):
                yield match

    def fits_node(self, pattern: ResultOf, node: Node, operands: Sequence[Value | None], match: Match) -> bool:
        if node.op.domain not in ("", OWN) or node.op.name not in pattern.operators or node not in self.own:
            return False
        if any(value.uses or self.graph.is_output(value) for value in node.outputs[1:] if value is not None):
            return False
        match.matched.append(node)
        if pattern.name:
            match.nodes[pattern.name] = node
        given = [*operands, *[None] * (len(pattern.operands) - len(operands))]
        if not pattern.rest and any(value is not None for value in given[len(pattern.operands) :]):
            return False
        return all(self.fits(part, value, match) for part, value in zip(pattern.operands, given, strict=False))

    def fits(self, pattern: Pattern, value: Value | None, match: Match) -> bool:
        match pattern, value:
            case OptionalOperand(), None:
                return True
            case OptionalOperand(inner), _:
                return self.fits(inner, value, match)
            case _, None:
                return False
            case AnyValue(name), Value():
                return match.values.setdefault(name, value) is value
            case ConstantOperand(name), Value():
                return value.constant is not None and match.values.setdefault(name, value) is value
            case Number(number), Value():
                return _is_near(value, number) and match.numbers.setdefault(value, number) == number
            case FirstOf(patterns), Value():
                before = match.copy()
                for part in patterns:
                    if self.fits(part, value, match):
                        return True
                    match.become(before)
                return False
            case ResultOf(), Value():
                maker = value.producer
                if maker is None or not maker.outputs or maker.outputs[0] is not value:
                    return False
                if pattern.read_once and (len(value.uses) != 1 or self.graph.is_output(value)):
                    return False
                if maker.op.name not in pattern.operators:
                    return False
                before = match.copy()
                for operands in _orders(pattern, maker):
                    if self.fits_node(pattern, maker, operands, match):
                        return True
                    match.become(before)
        return False


def _is_near(value: Value, number: float) -> bool:
    type = value.type
    is_number = type.dtype.is_float or type.dtype.is_integer
    if value.constant is None or not type.is_static or type.count != 1 or not is_number:
        return False
    allowed = NEAR_IN_HALF if type.dtype.is_narrow_float else NEAR
    return abs(float(value.constant.array.reshape(-1)[0]) - number) <= allowed * abs(number)


def _orders(pattern: ResultOf, node: Node) -> list[Sequence[Value | None]]:
    if pattern.either_order and len(node.inputs) == 2:
        return [node.inputs, node.inputs[::-1]]
    return [node.inputs]
