"""What a kind is: typed parameters, operand roles, and which part of each operand a part of the result needs.

A kind says what is computed, never how or where: shapes and strides are those of the views in the call, so a
transposed, sliced or broadcast operand is just a view. Shapes are always those of ONNX (batch, channels, space);
channels-last is a matter of strides.

Invariant: a kind is a frozen dataclass; two equal kinds over equal views compute the same thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field
from typing import Any, ClassVar, TypeVar

from ..base.dims import Dim
from ..base.discovery import import_package_modules
from ..base.names import snake_case
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.ir import Expr, Index, operands_used, walk
from ..expr.ir import Operand as OperandLeaf
from ..expr.known import Known, unknown

Box = tuple[tuple[Dim, Dim], ...]  # per axis [low, high)


@dataclass(frozen=True)
class Check:
    """What operands of one type must hold so that no access of a kernel leaves its memory. Init calls
    `mcc_check_<function>_<dtype>(operands.., count, numbers..)` (mcc_check.h) for operands that lie in the blob; those
    made at run time hold it by the way they are made."""

    function: str
    operands: tuple[int, ...]
    numbers: tuple[int, ...]


def within(operand: int, low: int, high: int) -> Check:
    """Every element lies from `low` to `high`."""
    return Check("within", (operand,), (low, high))


AnyKind = TypeVar("AnyKind", bound="Kind")


class Kind:
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # every kind is a dataclass
    name: ClassVar[str] = ""  # of the class, as files have it: conv_transpose
    roles: ClassVar[tuple[str, ...]] = ()  # names of the fixed operands, for comments and checks
    optional: ClassVar[tuple[str, ...]] = ()  # of those that may follow them

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.name = snake_case(cls.__name__)

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the fixed operands that are there; an optional one is where the parameter of its name says so."""
        return (*self.roles, *(name for name in self.optional if getattr(self, name)))

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        """Why these types do not fit the kind, or nothing. Called by the verifier."""
        raise NotImplementedError

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        """Per operand, the box that is read to make `box` of result 0. The whole operand is always a right answer."""
        return tuple(whole(shape) for shape in ins)

    def checks(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> tuple[Check, ...]:
        """What operands must hold where kernels take their elements for indices as they are."""
        return ()

    def known(self, given: Sequence[Known], ins: Sequence[TensorType], outs: Sequence[TensorType]) -> tuple[Known, ...]:
        """What is known of each result, given what is of each operand."""
        return tuple(unknown(out.dtype) for out in outs)

    def macs(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Dim:
        """Multiply-accumulates (0 for what does not multiply and accumulate)."""
        return 0

    def expressions(self) -> tuple[Expr, ...]:
        """All scalar expressions among the parameters, for kernels that must support what is in them."""
        return ()

    @property
    def grouped(self) -> tuple[int, ...]:
        """Axes along which elements of operand 0 are computed together, where its shape is that of the one result: both
        may be stored in an order of axes that suits kernels. Other kinds have none."""
        return ()

    def counts_places(self, axis: int) -> bool:
        """Do results depend on where along an axis they lie, so that the kind of a slice gives other results?"""
        nodes = (node for expr in self.expressions() for node in walk(expr))
        return any(isinstance(node, Index) and node.axis == axis for node in nodes)


class WithEpilogue(Kind):
    """A kind whose result goes through `epilogue` before it is stored: operand 0 of it is the computed element,
    operands 1.. are the call's operands after the fixed ones, each a view of the result's shape. No epilogue means the
    element itself."""

    epilogue: Expr | None

    @property
    def fixed(self) -> int:
        """How many operands come before those of the epilogue."""
        return len(self.names)

    def expressions(self) -> tuple[Expr, ...]:
        return (self.epilogue,) if self.epilogue else ()

    def check_epilogue(self, element: TensorType, ins: Sequence[TensorType], out: TensorType) -> str:
        """Why the epilogue does not turn `element` and the extra operands into `out`, or nothing."""
        extras = ins[self.fixed :]
        if out.shape != element.shape:
            return f"the result has shape {out}, not {element}"
        if self.epilogue is None:
            return "" if out.dtype is element.dtype and not extras else f"the result is {out}, not {element}"
        return check_expression(self.epilogue, [element, *extras], out)


class AlongAxes(WithEpilogue):
    """A kind that works along `axes` of an expression over the first `operands`; those of the epilogue follow."""

    roles: ClassVar[tuple[str, ...]] = ("x",)
    axes: tuple[int, ...]
    operands: int

    @property
    def fixed(self) -> int:
        return self.operands

    def check_axes(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(outs) != 1 or self.operands < 1 or len(ins) < self.operands:
            return f"it has at least {max(self.operands, 1)} operands and one result"
        if any(not 0 <= axis < ins[0].rank for axis in self.axes):
            return f"axes {self.axes} are not those of {ins[0]}"
        return ""

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        full = whole(ins[0])
        read = tuple(full[axis] if axis in self.axes else box[axis] for axis in range(len(full)))
        return (*(read for _ in ins[: self.operands]), *(box for _ in ins[self.operands :]))


def check_expression(expr: Expr, operands: Sequence[TensorType], out: TensorType) -> str:
    """Why an elementwise expression over operands of the result's shape does not give `out`, or nothing."""
    if expr.dtype is not out.dtype:
        return f"the expression gives {expr.dtype}, not {out.dtype}"
    for index in operands_used(expr):
        if index >= len(operands):
            return f"the expression reads operand {index}, there are {len(operands)}"
        if operands[index].shape != out.shape:
            return f"operand {index} has shape {operands[index]}, the result is {out}"
    for node in walk(expr):
        if isinstance(node, OperandLeaf) and node.dtype is not operands[node.index].dtype:
            return f"the expression takes operand {node.index} for {node.dtype}, it is {operands[node.index].dtype}"
    return ""


@dataclass(frozen=True)
class MovedRows(Kind):
    """Kinds that bring elements as they are from one place to another, row by row where a chain does."""

    roles: ClassVar[tuple[str, ...]] = ("x",)
    axis: int  # of rows

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 1 or len(outs) != 1 or ins[0] != outs[0]:
            return "it has one operand and one result of the same type"
        return "" if 0 <= self.axis < ins[0].rank else f"{ins[0]} has no axis {self.axis}"

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        return (box,)


def whole(shape: Shape) -> Box:
    return tuple((0, dim) for dim in shape)


def registry() -> dict[str, type[Kind]]:
    """Every kind by the name of its class, found by scanning this folder."""
    found: dict[str, type[Kind]] = {}
    for module in import_package_modules(__package__):
        for item in vars(module).values():
            if isinstance(item, type) and issubclass(item, Kind) and item.__module__ != __name__:
                found[item.__name__] = item
    return dict(sorted(found.items()))
