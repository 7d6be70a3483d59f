"""External: an operator, or several, that a C function of the user's own computes (`--external`), or an accelerator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..base.constant import Constant
from ..base.dtypes import DType
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..kinds.external import Attributes
from ..kinds.external import External as ExternalKind
from .api import Fact, Invalid, Lowering, Operator, Site, Unsupported


@dataclass(frozen=True)
class External(Operator):
    """A C function of the user's own: --external NAME=function."""

    domain = "mccompile"
    function: str
    takes: tuple[DType | None, ...]  # None: an operand that is absent
    gives: tuple[tuple[DType, Shape], ...]
    attributes: Attributes = ()
    include: str = ""
    workspace: int = 0
    align: int = 1
    strided: bool = False
    accelerator: str = ""
    cycles: float = 0.0

    def infer(self, site: Site) -> list[Fact]:
        if tuple(fact and fact.type.dtype for fact in site.facts) != self.takes:
            raise Invalid(f"function {self.function} takes other operands")
        return [Fact(TensorType(dtype, shape)) for dtype, shape in self.gives]

    def lower(self, to: Lowering) -> None:
        absent = tuple(place for place, dtype in enumerate(self.takes) if dtype is None)
        kind = ExternalKind(
            self.function,
            self.include,
            self.attributes,
            absent,
            self.workspace,
            self.align,
            self.strided,
            self.accelerator,
            self.cycles,
        )
        views = to.call(kind, to.inputs(), *(TensorType(dtype, shape) for dtype, shape in self.gives))
        for place, view in enumerate(views):
            if to.wants(place):
                to.set(place, view)

    def evaluate(self, arrays: Sequence[np.ndarray | None]) -> np.ndarray | None:
        return None


def handed_attributes(given: dict[str, object]) -> Attributes:
    """Attributes of a node as a C function gets them."""
    return tuple((name, _numbers(name, value)) for name, value in sorted(given.items()) if value is not None)


def _numbers(name: str, value: object) -> tuple[int, ...] | tuple[float, ...] | str:
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, str):
        return value
    items = tuple(value) if isinstance(value, tuple | list) else (value,)
    if not isinstance(value, Constant) and all(isinstance(item, int) for item in items):
        return tuple(map(int, items))
    if not isinstance(value, Constant) and all(isinstance(item, int | float) for item in items):
        return tuple(map(float, items))
    what = "a tensor" if isinstance(value, Constant) else "no number, list of numbers or text"
    raise Unsupported(f"attribute {name!r} is {what}, and a function cannot get that", "make it an operand")
