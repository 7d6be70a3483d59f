"""What an operator is, and how the registry finds them.

A class per operator, called as it is, a frozen dataclass whose fields are the attributes of the newest version, with
their defaults. `from_onnx` brings nodes of older versions to that form. Invariant: `versions` lists the
`since_version`s whose meaning the class covers completely; a node of any other version is refused by the frontend, so
nothing is ever compiled by guess.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from ..base.constant import Constant
from ..base.discovery import import_package_modules
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..graph.ir import OWN, Fact, Graph, Invalid, Limit, Op, Site, Unsupported, Value
from .lowering import Lowering

if TYPE_CHECKING:
    from .rules.backward import Backward

AnyOperator = TypeVar("AnyOperator", bound="Operator")

INJECTIVE, REDUCTION, ANCHOR, OPAQUE = "injective", "reduction", "anchor", "opaque"


@dataclass
class OnnxNode:
    """A node as a file has it, on its way to an `Operator`. `from_onnx` may change attributes and inputs."""

    name: str
    version: int  # the since_version that applies
    attributes: dict[str, Any]  # ints, floats, strings, tuples of them, Constants
    inputs: list[Value | None]
    outputs: int
    constant: Callable[[np.ndarray], Value]  # makes a constant value to use as an input
    regions: tuple[Graph, ...] = ()
    ranks: Sequence[Sequence[int | None]] = ()  # that the file declares for the inputs of each region
    add: Callable[[Operator, list[Value]], Value] | None = None  # puts another node before this one
    string_room: Callable[[], int | None] = lambda: None  # bytes for strings that are made, if the user says so
    results: tuple[TensorType | None, ...] = ()  # what the model declares of their shapes
    limits: tuple[Limit, ...] = ()  # what the user says of sizes of the results,
    most: Mapping[int, int] = dataclasses.field(default_factory=dict)  # and of the values of `bounded` operands
    steps: Mapping[int, int] = dataclasses.field(default_factory=dict)  # what a trip adds to operands that count

    def rank(self, region: int, position: int) -> int | None:
        """What the file declares of the rank of an input of a region."""
        ranks = self.ranks[region] if region < len(self.ranks) else ()
        return ranks[position] if position < len(ranks) else None

    def made(self, name: str, inputs: list[Value]) -> Value:
        """The result of an operator that has to run before this one."""
        if self.add is None:
            raise Unsupported(f"{name} would have to run before it")
        return self.add(resolve("", name)(), inputs)

    def attribute_to_input(self, name: str, position: int, dtype: type | np.dtype[Any] | None = np.int64) -> None:
        """What used to be an attribute and is an operand now."""
        if name in self.attributes:
            self.set_input(position, self.constant(np.asarray(self.attributes.pop(name), dtype)))

    def set_input(self, position: int, value: Value) -> None:
        self.inputs += [None] * (position + 1 - len(self.inputs))
        self.inputs[position] = value


class Operator(Op, abstract=True):
    versions: ClassVar[tuple[int, ...]] = ()
    fusion: ClassVar[str] = OPAQUE
    channels_last: ClassVar[bool] = False  # runs best where the channels of its result lie next to each other
    same_layout: ClassVar[bool] = False  # and only where those of operand 0 lie as those of its result do
    bounded: ClassVar[tuple[int, ...]] = ()  # operands whose value (one number) the user may bound
    quantizes: ClassVar[bool] = False  # floats to integers that stand for them
    no_gradient: ClassVar[str] = ""  # why there is no rule for it
    random: ClassVar[bool] = False  # gives another result each time: never folded or shared
    writable: ClassVar[bool] = True  # do its fields and operands make the ONNX node again?

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        """The operator for a node of any of `versions`."""
        return make(cls, node)

    @classmethod
    def region_inputs(cls, node: OnnxNode, index: int) -> Sequence[Fact] | None:
        """Facts about the inputs of region `index`, where the operands tell them; None: as the file declares them."""
        return None

    def reordered(self, order: tuple[int, ...]) -> Operator | None:
        """The operator that does the same where the axes of its operands and results (those of full rank) come in
        another order: axis i is what axis `order[i]` was. None where there is no such operator. Operands of lower rank
        are brought to full rank before, but for those that `reordered_operands` speaks of."""
        return None

    def reordered_operands(self, site: Site, order: tuple[int, ...]) -> Mapping[int, np.ndarray | None]:
        """Operands that are not tensors over the axes, but speak of them: their new contents, None where they stay."""
        return {}

    def lower(self, to: Lowering) -> None:
        """Calls that compute the results, made through `to`."""
        raise NotImplementedError

    def gradient(self, back: Backward) -> None:
        """Writes the nodes that compute the gradients of the operands that are wanted (`give`), or says that they are
        zero (`nothing`)."""
        back.refuse(self.no_gradient or f"{self.name} has no rule for its gradient")

    def evaluate(self, arrays: Sequence[np.ndarray | None]) -> np.ndarray | None:
        """The result in numpy, for operators of our own, which ONNX's evaluator does not know; None: not folded."""
        return None

    def to_onnx(self) -> tuple[dict[str, Any], int | None]:
        """Attributes of the ONNX node that means the same, and the opset it has to be read under (None: the newest)."""
        attributes = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None:
                attributes[field.name] = value
        return attributes, None


class OwnOperator(Operator, abstract=True):
    """One that ONNX lacks. The frontend writes nodes of it, which are read like those of a file."""

    domain = OWN
    versions = (1,)


def make(cls: type[AnyOperator], node: OnnxNode) -> AnyOperator:
    """The operator with the attributes of the node; names it does not know are an error in the model."""
    known = {field.name for field in dataclasses.fields(cls)}
    unknown = sorted(set(node.attributes) - known)
    if unknown:
        raise Invalid(f"{cls.name} has no attribute {', '.join(unknown)}")
    try:
        return cls(**node.attributes)
    except TypeError as problem:
        raise Invalid(f"an attribute is missing: {problem}") from None


def same_type(site: Site, dtype: Any = None) -> list[Fact]:
    """The type rule of operators whose result is like operand 0."""
    type = site.type(0)
    return [Fact(dataclasses.replace(type, dtype=dtype) if dtype else type)]


def normal_axis(axis: int, rank: int) -> int:
    """An axis counted from 0; negative ones count from the end."""
    if not -rank <= axis < max(rank, 1):
        raise Invalid(f"axis {axis} is outside of a tensor of rank {rank}")
    return axis + rank if axis < 0 else axis


def normal_axes(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Axes counted from 0, in ascending order, each once."""
    found = sorted(normal_axis(axis, rank) for axis in axes)
    if len(set(found)) != len(found):
        raise Invalid(f"an axis is named twice in {list(axes)}")
    return tuple(found)


_REGISTRY: dict[tuple[str, str], type[Operator]] = {}


def registry() -> Mapping[tuple[str, str], type[Operator]]:
    """Every operator class by (domain, name)."""
    _register(import_package_modules(__package__))
    return _REGISTRY


def find(domain: str, name: str) -> type[Operator] | None:
    """The class for an operator's name. Only the file that defines it is imported, since a model uses few of all
    operators and importing every one would be half of the time that a small model takes."""
    if (domain, name) not in _REGISTRY:
        _register(import_module(f"{__package__}.{stem}") for stem in _files().get(name, ()))
    return _REGISTRY.get((domain, name))


def operator_names() -> Set[str]:
    """All names of operators, read from the files, none of which is imported."""
    return _files().keys()


@cache
def _files() -> Mapping[str, Sequence[str]]:
    """The stems of the files that define operators of each name."""
    found: dict[str, list[str]] = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        for name in _DEFINED.findall(path.read_text(encoding="utf-8")):
            found.setdefault(name, []).append(path.stem)
    return found


# What stands where a file defines an operator.
_DEFINED = re.compile(r"^(?:class )?([A-Z]\w*)(?:\((?!.*abstract=True)| = scalar_function\()", re.MULTILINE)


def resolve(domain: str, name: str) -> type[Operator]:
    """The class for an operator's name; KeyError where there is none."""
    found = find(domain, name)
    if found is None:
        raise KeyError((domain, name))
    return found


def _register(modules: Iterable[ModuleType]) -> None:
    for module in modules:
        for item in vars(module).values():
            if isinstance(item, type) and issubclass(item, Operator) and item.name:
                _REGISTRY[item.domain, item.name] = item


__all__ = [
    "ANCHOR",
    "INJECTIVE",
    "OPAQUE",
    "OWN",
    "REDUCTION",
    "Constant",
    "Fact",
    "Invalid",
    "Lowering",
    "OnnxNode",
    "Operator",
    "Site",
    "Unsupported",
    "find",
    "make",
    "normal_axes",
    "normal_axis",
    "operator_names",
    "registry",
    "resolve",
    "same_type",
]
