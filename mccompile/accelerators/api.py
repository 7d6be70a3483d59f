"""The contract of an accelerator: which units of a graph it takes, and what a region of them becomes.

A region becomes one C function, `static int NAME(const mcc_external *call)` (mcc_external.h), which returns not 0
where the accelerator fails. Its operands are the region's inputs, then the constants of `Built`, which lie in the blob;
its workspace lies in the arena. Where `MCC_STAND_IN` is defined, as `check` does, there is no accelerator, and

    static int NAME_stand_in(const void *const *inputs, void *const *results)

computes the region in C, with inputs and results as the function has them, and returns 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import ClassVar

import numpy as np

from ..base.provenance import Provenance
from ..base.records import dataclass
from ..graph.ir import Graph, Node, Value
from ..graph.ir import reads as operands
from ..kernels.api import No
from ..ops.quantize import DequantizeLinear, QuantizeLinear
from ..ops.transpose import Transpose

__all__ = ["Accelerator", "Built", "No", "Region", "Unit", "Without"]

Order = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Unit:
    """What is taken as a whole: a node, or nodes between quantized tensors, with the DequantizeLinear in front of them
    and the QuantizeLinear behind."""

    nodes: tuple[Node, ...]  # in their order

    @property
    def reads(self) -> list[Value]:
        """Tensors that are computed outside of it."""
        made = {value for node in self.nodes for value in node.present_outputs}
        inputs = (value for node in self.nodes for value in operands(node))
        return list(dict.fromkeys(value for value in inputs if value.constant is None and value not in made))

    @property
    def makes(self) -> list[Value]:
        """Tensors that others may read."""
        last = [node for node in self.nodes if isinstance(node.op, QuantizeLinear)] if self.is_quantized else self.nodes
        return [value for node in last for value in node.present_outputs]

    @property
    def is_quantized(self) -> bool:
        return len(self.nodes) > 1

    @property
    def work(self) -> list[Node]:
        """The nodes that compute, without those that quantize."""
        if not self.is_quantized:
            return list(self.nodes)
        return [node for node in self.nodes if not isinstance(node.op, QuantizeLinear | DequantizeLinear)]

    @property
    def moves(self) -> bool:
        """Does it do nothing but name axes in another order?"""
        return len(self.nodes) == 1 and isinstance(self.nodes[0].op, Transpose)

    @property
    def provenance(self) -> Provenance:
        return tuple(dict.fromkeys(name for node in self.work or self.nodes for name in node.provenance))

    def __str__(self) -> str:
        return " + ".join(node.op.qualified_name for node in self.work or self.nodes)


@dataclass(frozen=True)
class Region:
    """Units that an accelerator takes, connected, with no way out of them and back in."""

    name: str  # of its C function
    units: tuple[Unit, ...]
    inputs: tuple[Value, ...]
    results: tuple[Value, ...]

    @property
    def nodes(self) -> Iterator[Node]:
        """In their order; what several units read comes once."""
        return iter(dict.fromkeys(node for unit in self.units for node in unit.nodes))

    @property
    def provenance(self) -> Provenance:
        return tuple(dict.fromkeys(name for unit in self.units for name in unit.provenance))


@dataclass(frozen=True)
class Built:
    code: str  # C: what the function needs, and the function
    cycles: float  # a run of the region, as the core would count them
    constants: Sequence[np.ndarray] = ()  # operands behind the inputs
    workspace: int = 0  # bytes
    align: int = 1  # bytes, of operands, results and workspace
    # The order of axes in which the function gets an input or gives a result; those left out come as they are.
    orders: Mapping[Value, Order] = field(default_factory=dict)
    waits: float = 0.0  # of `cycles`, those in which it only waits for constants: estimates of the core have none


@dataclass(frozen=True)
class Without(No):
    """These units of a region cannot be taken; the others may be asked for again."""

    units: tuple[Unit, ...]


class Accelerator:
    """`--accelerator NAME`, where NAME is one of `names`; `--accelerator FOLDER` for one of the user's own."""

    names: ClassVar[tuple[str, ...]] = ()

    def __init__(self, name: str) -> None:
        self.name = name

    def check(self) -> None:
        """Raises WrongUse where something is missing that it needs."""

    def takes(self, unit: Unit) -> No | None:
        """Why not, or nothing. Sizes of a unit are known."""
        raise NotImplementedError

    def build(self, region: Region) -> No | Built:
        raise NotImplementedError

    def round_there(self, stand_in: Graph) -> bool:
        """Rewrites a region, which becomes the stand-in, where the accelerator rounds otherwise than its operators say.
        False: it does nowhere."""
        return False
