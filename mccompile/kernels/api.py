"""The kernel contract: everything the compiler may ask of a kernel, and all that a kernel sees of the compiler.

A kernel is a pair in `kernels_templates/<kind>/`: `<stem>.py` defines one `Kernel` subclass, `<stem>.c.j2` renders its
C function. The stem is `<dtype>_<layout>_<algorithm>[_<tile>]__<isa>`. One C function is made per distinct instance
(kernel + `context` + signature), with shapes and attributes as literals; numbers that come from weights are operands.

C signature: `(out.., in.., scratch)`; pointers point at the first element of each view. Where a call runs row by row
(`call.rows`) or workers share it (`call.workers`), `begin, end` follow: rows, or units of work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..base.constant import Constant
from ..base.dims import Dim, static, upper
from ..base.dtypes import DType, f32
from ..base.records import dataclass
from ..base.summation_error import plain
from ..base.tensor import Shape, TensorType
from ..expr.ir import walk
from ..kinds.api import Kind
from ..program.ir import Call, View
from ..targets.api import Prefer, Target
from .column_tiles import ColumnTiles
from .varying import varying

__all__ = [
    "Call",
    "Case",
    "Cost",
    "Kernel",
    "Needs",
    "No",
    "Prefer",
    "SizedCase",
    "Target",
    "View",
    "elementwise_alias",
    "static_views",
    "supports_types",
    "terms",
    "viewed",
]


@dataclass(frozen=True)
class No:
    """This kernel cannot serve the call; the reason goes into error messages and `--explain`."""

    reason: str


@dataclass(frozen=True)
class Needs:
    """What a kernel asks for when it takes a call. Operands are counted over the call's ins; results over its outs."""

    dense: frozenset[int] = frozenset()  # operands that must be row-major without gaps (a copy is made of others)
    dense_outs: frozenset[int] = frozenset()
    align: Mapping[int, int] = field(default_factory=dict)  # operand -> bytes
    align_outs: Mapping[int, int] = field(default_factory=dict)
    slack: Mapping[int, int] = field(default_factory=dict)  # operand -> bytes that may be read past its end
    constant: frozenset[int] = frozenset()  # operands that must be constants (they are packed)
    # (result, operand) -> bytes: the result may start at most this far before the operand's first byte and up to it; 0:
    # at the same
    # place. Pairs left out must not overlap.
    alias: Mapping[tuple[int, int], int] = field(default_factory=dict)
    scratch: int = 0  # bytes of workspace, per worker
    scratch_align: int = 16
    rows: frozenset[int] = frozenset()  # axes of result 0 along which it can run piece by piece, operands in rings
    at_end: bool = False  # run piece by piece, it writes the result only when it reads the last piece
    symbols: bool = False  # sizes may be known only at run time
    numeric: str = "exact"  # or "ulp": may differ from the portable kernel in the last places
    # sizes chosen for this target (lanes, tile ...); the kernel finds them again in `call.blocks`
    blocks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Cost:
    time: float  # cycles of the target's core, roughly; targets/machine.py says what things take
    code: int = 0  # bytes
    blob: int = 0  # bytes more than the constants themselves
    stack: int = 0
    measured: bool = False  # the time is not an estimate


@dataclass(frozen=True)
class Case:
    """One entry of the test matrix: a kind over operands of these types. Views may be strided: `permute` stores an
    operand in another order of axes (`permute_outs` a result), along the axes in `repeated` an operand has one element
    for all positions. `constant` operands come from the blob."""

    name: str
    kind: Kind
    ins: tuple[TensorType, ...]
    outs: tuple[TensorType, ...]
    permute: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    constant: frozenset[int] = frozenset()
    ranges: Mapping[int, tuple[float, float]] = field(default_factory=dict)  # of random operand values; default -2..2
    values: Mapping[int, np.ndarray] = field(default_factory=dict)  # of operands that cannot be random
    permute_outs: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    repeated: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    error: float = 0.0  # that the method itself may make, over the largest result
    option: str = ""  # of targets: only where it is set the kernel takes the case

    @classmethod
    def of_one_type(
        cls,
        name: str,
        kind: Kind,
        ins: Sequence[Shape],
        out: Shape,
        dtype: DType = f32,
        extras: int = 0,
        constant: bool = False,
        **more: Any,
    ) -> Case:
        """All elements have one type; the epilogue has so many `extras`; operand 1 is from the blob if `constant`."""
        result = TensorType(dtype, out)
        types = (*(TensorType(dtype, shape) for shape in ins), *[result] * extras)
        return cls(name, kind, types, (result,), constant=frozenset({1} if constant else ()), **more)


SizedCase = Callable[[int, int, int], Case]


class Kernel:
    kind: ClassVar[type[Kind]]
    stem: str = ""  # the name of its file, and the end of that: set by the registry
    isa: str = ""
    template: Path
    asks: ClassVar[bool] = False  # Do functions of the program's give its operands, which are passed as mcc_rows?
    copies: ClassVar[bool] = False  # Does it copy between memories?
    rounds: ClassVar[bool] = False  # does it round operands to fewer bits, where calls permit it?
    branches: ClassVar[str] = "nothing is claimed of the branches of this kernel"  # on data, of its own; "": none does

    @property
    def id(self) -> str:
        return f"{self.kind.name}/{self.stem}"

    def cases(self) -> Sequence[Case]:
        """What the kernel matrix tests it with."""
        raise NotImplementedError

    def sized_cases(self) -> Sequence[SizedCase]:
        """Functions that make a case of any three sizes; tests choose sizes around the blocks of vectors, and are named
        as the function is. Kernels of the ISA `vec` give at least one."""
        return ()

    def match(self, call: Call, target: Target) -> No | Needs:
        """By default all calls of known sizes, over types that C computes in."""
        reason = static_views(call) or supports_types(call)
        return No(reason) if reason else Needs()

    def cost(self, call: Call, target: Target) -> Cost:
        raise NotImplementedError

    def vectorizes(self, call: Call, target: Target) -> bool:
        """Do compilers make vectors of its loops? A portable kernel is as good as one with vectors then."""
        return False

    def rounding(self, call: Call) -> float:
        """How far sums of 32-bit floats are off, as base/summation_error.py counts it."""
        return plain(terms(call))

    def varies(self, call: Call, target: Target) -> Sequence[str]:
        """Why its instructions may depend on data, where that is so; `evidence` prints it, and `embedded/same_time`
        counts whether it is all."""
        own = [self.branches] if self.branches else []
        return sorted({*own, *varying(call, target, self.isa in ("vec", "helium", "dot"))})

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        """New contents for constant operands, given what is in their buffers; those left out stay as they are. Depends
        on shapes, blocks and values only. The call keeps the shapes of its operands; the strides of a packed one mean
        nothing."""
        return {}

    def indexed(self, call: Call) -> frozenset[int] | None:
        """If it stores weights that take at most 16 values as indices of 4 bits where the kind says that they do
        (`palette`): which values it adds to these. None: it does not."""
        return None

    def packing(self, call: Call) -> Mapping[int, str]:
        """The name of the packing of each operand that `pack` changes: part of the identity."""
        return {}

    def column_tiles(self, call: Call) -> Mapping[int, Sequence[ColumnTiles]]:
        """How the columns of packed matrices lie, where that can be said: others may read them there."""
        return {}

    def context(self, call: Call) -> Mapping[str, Any]:
        """What the template sees besides `signature` and `function`. No values of weights."""
        raise NotImplementedError

    def queued(self, call: Call) -> bool:
        """Is it handed what the copy before it has left on its way (mcc_copy.h)?"""
        return False

    def moves(self, call: Call, begin: int, end: int) -> int:
        """How many copies make rows from `begin` up to `end`."""
        return 0

    def left(self, call: Call, begin: int, end: int) -> int:
        """Bytes that are on their way when it has made rows from `begin` up to `end`."""
        return 0

    def failure(self, call: Call) -> str:
        """The status with which a run ends where the function returns not 0; nothing where it returns nothing."""
        return "MCC_ERR_ROWS" * self.asks or "MCC_ERR_READ" * self.copies

    def units(self, call: Call) -> Sequence[int]:
        """What the workers of a call share, as `call.blocks` cuts it: how much work each unit is (see work.py); nothing
        where it cannot be shared."""
        return (1,) * static(call.outs[0].shape[call.rows]) if call.rows is not None else ()

    def barrier(self, call: Call) -> int:
        """How many of the units are done before any other begins; the workers share one workspace then. 0: no unit
        waits, and each worker has a workspace of its own."""
        return 0

    def sizes(self, call: Call) -> Mapping[str, int]:
        """Numbers that the template uses by name instead of writing them out. Where flash is preferred, calls that
        differ in nothing else share one function, which finds them in a table; elsewhere they are constants in it."""
        return {}

    def family(self, call: Call) -> str:
        """The name of a function for many sizes."""
        return self.kind.name

    def label(self, call: Call) -> str:
        """A short readable name for the C function; made unique by the caller."""
        return self.kind.name

    def headers(self, call: Call) -> frozenset[str]:
        """C headers that the function needs besides mcc.h and those of the scalar functions it uses."""
        return frozenset()

    def files(self, call: Call) -> Mapping[str, Path]:
        """Headers of the user's own that the function includes, which become part of what is written."""
        return {}

    def parameter_names(self, call: Call) -> tuple[list[str], list[str]]:
        """Names of the C parameters for results and operands."""
        outs = ["y"] if len(call.outs) == 1 else [f"y{i}" for i in range(len(call.outs))]
        fixed = call.kind.names[: len(call.ins)]
        return outs, [*fixed, *(f"e{i}" for i in range(len(call.ins) - len(fixed)))]

    def unpassed(self, call: Call) -> frozenset[str]:
        """Of these the operands that the function is not given: it reads nothing of them, or what it reads is packed
        into others."""
        return frozenset()


def terms(call: Call) -> int:
    """How many products are added up to an element of the result."""
    return upper(call.macs) // max(upper(call.outs[0].type.count), 1)


def viewed(view: View, constant: Constant) -> np.ndarray:
    """What a view shows of its constant buffer; repetitions along an axis count once if their number is not known."""
    flat = np.ascontiguousarray(constant.array).reshape(-1)[static(view.offset) :]
    strides = [static(stride) * flat.itemsize for stride in view.strides]
    repeated = [stride == 0 and not isinstance(dim, int) for dim, stride in zip(view.shape, strides, strict=True)]
    shape = [1 if once else static(dim) for dim, once in zip(view.shape, repeated, strict=True)]
    return np.lib.stride_tricks.as_strided(flat, shape, strides, writeable=False)


def static_views(call: Call, *views: View) -> str:
    """Why a kernel without run-time sizes in these views (none named: all) cannot take the call, or nothing."""
    dims: list[Dim] = [d for view in views or (*call.ins, *call.outs) for d in (*view.shape, *view.strides)]
    symbolic = [d for d in dims if not isinstance(d, int)]
    return f"the size {symbolic[0]} is known only at run time" if symbolic else ""


def supports_types(call: Call, dtypes: Sequence[DType] | None = None, strings: bool = False) -> str:
    """Why the element types of the call are out of reach for scalar C, or nothing. Strings will do where elements
    are only moved."""
    used = [v.buffer.dtype for v in (*call.ins, *call.outs)]
    used += [node.dtype for expr in call.kind.expressions() for node in walk(expr)]
    for dtype in used:
        if dtype.kind == "complex" or (dtype.kind == "string" and not strings):
            return f"element type {dtype} is not supported"
        if dtypes is not None and dtype not in dtypes:
            return f"element type {dtype} is not supported"
    for view in (*call.ins, *call.outs):
        if view.buffer.dtype.is_packed and view.offset * view.buffer.dtype.bits % 8 != 0:
            return f"a view of {view.buffer.dtype} starts inside a byte"
    return ""


def elementwise_alias(call: Call, operand: int, result: int = 0, order: Sequence[int] | None = None) -> bool:
    """May the result be written over an operand that is read, element by element, at the same position just before the
    write? Yes where both lie the same way. Elements that get smaller leave their position; their writes stay behind the
    reads only of a kernel that visits all elements as they lie in memory: `order` names its axes, outermost first."""
    source, out = call.ins[operand], call.outs[result]
    if source.shape != out.shape or out.buffer.dtype.is_packed or source.buffer.dtype.is_packed:
        return False
    if source.buffer.dtype.bits == out.buffer.dtype.bits:
        return all(a == b or dim == 1 for dim, a, b in zip(out.shape, source.strides, out.strides, strict=True))
    if order is None or out.buffer.dtype.bits > source.buffer.dtype.bits:
        return False
    return source.permuted(order).is_dense and out.permuted(order).is_dense
