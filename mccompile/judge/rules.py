"""What a rule of an operator is given, and how it is found.

Invariant: floats are float64 whatever type the model gives them (`NodeSite.type` says which), integers, bools and
complex numbers keep their own type (4-bit ones are held in int8 and uint8), text is an array of objects. A rule raises
`NoWitness` for what it does not judge; nothing is judged by guess. Where the standard leaves integers open, a rule
gives all results that implementations choose (`NodeSite.left_open`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cache
from typing import Any

import numpy as np

from ..base.discovery import import_package_modules
from ..base.records import dataclass

Array = Any  # of numpy, whose annotations make Any of most arithmetic on elements of any type


class NoWitness(Exception):
    """The judge has no rule for this."""


class Unspecified(NoWitness):
    """The standard does not say what comes out; it may be any of what `CHOICES` lead to."""


CHOICES = range(6)  # ways in which an implementation closes what the standard leaves open


Own = Callable[[Sequence[Any], Mapping[str, Any]], tuple[Array, ...]]  # results of operands and attributes


@dataclass(frozen=True)
class Node:
    op: str
    domain: str
    version: int  # of the domain's operators
    attributes: Mapping[str, Any]  # graphs are `Graph`
    inputs: tuple[str, ...]  # "" for one that is left out
    outputs: tuple[str, ...]
    body: Graph | None = None  # the function that the standard or the model says it is
    own: Own | None = None  # what a user says that it computes

    @property
    def title(self) -> str:
        return f"{self.domain}::{self.op}" if self.domain else self.op


@dataclass(frozen=True)
class Graph:
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    constants: Mapping[str, Any] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)  # element types by name, as far as they are known


Run = Callable[[Graph, Sequence[Any]], list[Any]]


@dataclass
class NodeSite:
    """A node with its operands. `run` gives the outputs of a graph in one of its attributes."""

    node: Node
    operands: list[Any]
    types: list[str]
    results: list[str]  # element types of results, "" where they follow from the rule
    run: Run
    rounded: Callable[[Array], Array]  # what a rule makes on its way to results, as these are rounded
    drift: Callable[[Array], Array]  # what rounding adds to its changes, and so to slopes
    choice: int | None = None  # of CHOICES, made everywhere in the model

    def __getitem__(self, index: int) -> Array:
        """A tensor; sequences are in `operands`."""
        if not self.has(index):
            raise NoWitness(f"{self.node.title} has no operand {index}")
        return self.operands[index]

    def has(self, index: int) -> bool:
        return index < len(self.operands) and self.operands[index] is not None

    def get(self, index: int, default: Any = None) -> Any:
        return self.operands[index] if self.has(index) else default

    def type(self, index: int = 0) -> str:
        return self.types[index] if index < len(self.types) else ""

    @property
    def version(self) -> int:
        return self.node.version

    @property
    def count(self) -> int:
        return len(self.node.outputs)

    def attr(self, name: str, default: Any = None) -> Any:
        return self.node.attributes.get(name, default)

    def ints(self, index: int, name: str) -> list[int] | None:
        """Integers that are an operand in newer versions and an attribute in older ones; None where they are left
        out."""
        if self.has(index):
            return [int(n) for n in np.asarray(self.operands[index]).reshape(-1)]
        found = self.attr(name)
        return None if found is None else [int(n) for n in np.atleast_1d(found)]

    def left_open(self, why: str, *candidates: Array) -> Array:
        """One of what implementations make, by the choice; without one they have to be the same."""
        first = candidates[0]
        if all(np.array_equal(first, other) for other in candidates[1:]):
            return first
        if self.choice is None:
            raise Unspecified(why)
        return candidates[self.choice % len(candidates)]

    def only(self, *names: str) -> None:
        """Other attributes than these are not judged."""
        other = sorted(self.node.attributes.keys() - set(names))
        if other:
            raise NoWitness(f"{self.node.title} with {', '.join(other)}")


Rule = Callable[[NodeSite], Any]
_RULES: dict[str, Rule] = {}


def judges(*titles: str) -> Callable[[Rule], Rule]:
    """Enters a rule; it gives an array, or a tuple of them for several results."""

    def register(rule: Rule) -> Rule:
        for title in titles:
            _RULES[title] = rule
        return rule

    return register


@cache
def rules() -> Mapping[str, Rule]:
    """By operator, called as `mccompile ops` calls it."""
    import_package_modules("mccompile.judge.operators")
    return _RULES
