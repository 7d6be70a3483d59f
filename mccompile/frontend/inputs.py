"""The inputs of a model: what its file declares, with free dimensions bound as the user says.

Invariant: every size that is given out is a number or has bounds; what nobody binds is named in one error, with the
options that would.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from onnx import GraphProto, ValueInfoProto

from ..base import dims as dimensions
from ..base.dims import Dim
from ..base.dtypes import DType, bool_, i64
from ..base.errors import Problem, WrongUse, raise_all
from ..base.names import c_identifier
from ..base.records import dataclass
from ..base.structures import Items, Maybe, SlotCapacity, Slots, leaves, named
from ..base.tensor import TensorType
from ..graph.ir import Fact, Refused, Unsupported, Value
from .bounds import Limits
from .findings import Findings
from .open_sizes import OpenSizes, Shape, SizesMissing
from .scope import ScopedValue
from .signature import similar
from .tensors import declared

DimRanges = Mapping[str, tuple[int, int]]  # free dimension -> lowest and highest size
# input -> sizes and names of free dimensions; of a sequence, of every element, or the shapes of all of them
InputShapes = Mapping[str, Sequence[int | str | tuple[int, ...]]]


@dataclass(frozen=True)
class _Declared:
    """The type that a file declares for an input."""

    dtype: DType
    shape: tuple[int | str | None, ...] | None  # of a sequence: of its elements
    is_sequence: bool
    is_optional: bool


class Inputs:
    """The inputs of a model with their free dimensions bound as the user says."""

    def __init__(
        self,
        graph: GraphProto,
        file: str,
        dims: DimRanges,
        shapes: InputShapes,
        limits: Limits,
        findings: Findings,
    ) -> None:
        self.limits = limits
        self.file, self.ranges, self.shapes, self.findings = file, dims, shapes, findings
        constants = {tensor.name for tensor in graph.initializer}
        constants |= {tensor.values.name for tensor in graph.sparse_initializer}
        self.inputs = [entry for entry in graph.input if entry.name not in constants]
        self.free: dict[str, None] = {}  # names of free dimensions that the file has
        self.bound: dict[str, Dim] = {}
        self.open = OpenSizes()

    def values(self) -> list[tuple[str, ScopedValue]]:
        types = [(entry.name, found) for entry in self.inputs if (found := self._declared(entry)) is not None]
        self.free = {dim: None for _, found in types for dim in found.shape or () if isinstance(dim, str)}
        self._check_use([name for name, _ in types])
        for name, (low, high) in self.ranges.items():
            self.bound[name] = dimensions.symbol(_symbol_name(name, self.bound), low, high)
        for name, found in types:  # a size given for one input holds for the others too
            for dim, size in zip(found.shape or (), self.shapes.get(name, ()), strict=False):
                if isinstance(dim, str) and isinstance(size, int):
                    self.bound.setdefault(dim, size)
        values: list[tuple[str, ScopedValue]] = []
        for name, found in types:
            whole = self._sequence(name, found) if found.is_sequence else self._tensor(name, found)
            if whole is not None:
                flag = Value(f"{name}_present", Fact(TensorType(bool_, ())))
                values.append((name, Maybe(flag, whole) if found.is_optional else whole))
        if self.open.users:
            raise SizesMissing(self.open, self.file)
        return values

    def _tensor(self, name: str, found: _Declared) -> Value | None:
        sizes = self._shape(name, found.shape)
        return None if sizes is None else Value(name, Fact(TensorType(found.dtype, sizes)))

    def _sequence(self, name: str, found: _Declared) -> Items[Value] | Slots[Value] | None:
        """A tensor for each element where the user says the shape of each; else slots for so many as he says."""
        given, most = self.shapes.get(name, ()), self.limits.of(name).most(0)
        listed = tuple(shape for shape in given if isinstance(shape, tuple))
        if (listed and len(listed) == len(given)) or (most is None and name in self.shapes and not given) or most == 0:
            self.limits.used.add(name)
            names = leaves(named(Items(found.dtype, listed), name))
            return Items(
                found.dtype,
                tuple(Value(n, Fact(TensorType(found.dtype, s))) for n, s in zip(names, listed, strict=True)),
            )
        if most is None:
            self.open.sequences[name] = None
            self.open.use(f"--bound {name}", f"sequence {name!r}")
            return None
        self.limits.used.add(name)
        shape = self._shape(name, found.shape)
        if shape is None:
            return None
        largest = tuple(dimensions.upper(dim) for dim in shape)
        room = SlotCapacity(most, largest, ragged=any(not isinstance(dim, int) for dim in shape))
        data = Value(name, Fact(TensorType(found.dtype, (most, room.size))))
        length = Value(f"{name}_length", Fact(TensorType(i64, ())))
        shapes = Value(f"{name}_shapes", Fact(TensorType(i64, (most, len(largest))))) if room.ragged else None
        return Slots(found.dtype, room, data, length, shapes)

    def _declared(self, entry: ValueInfoProto) -> _Declared | None:
        where = f"input {entry.name!r} in {self.file}"
        try:
            type = entry.type
            is_optional = type.WhichOneof("value") == "optional_type"
            type = type.optional_type.elem_type if is_optional else type
            is_sequence = type.WhichOneof("value") == "sequence_type"
            type = type.sequence_type.elem_type if is_sequence else type
            kind = type.WhichOneof("value")
            if kind != "tensor_type":
                fix = "" if kind else _typed(entry.name, self.file)
                raise Unsupported(f"it is {kind_name(kind)}, and only tensors can be passed in and out", fix)
            dtype, shape = declared(type)
            if dtype.kind == "complex":
                raise Unsupported("its elements are complex numbers, which are not supported")
            return _Declared(dtype, shape, is_sequence, is_optional)
        except Refused as refused:
            what = "unsupported input" if isinstance(refused, Unsupported) else "invalid input"
            self.findings.add(what, where, refused)
            return None

    def _check_use(self, names: list[str]) -> None:
        problems = []
        for dim, (low, high) in self.ranges.items():
            in_shapes = {size for shape in self.shapes.values() for size in shape if isinstance(size, str)}
            named_in_shape = any(dim in self._names_in(size) for size in in_shapes)
            size = f"{low}" if low == high else f"{low}..{high}"
            named_in_shape |= any(dim in self._names_in(other) for other in self.free)
            if dim not in self.free and not named_in_shape:
                known = f"those of {self.file} are {', '.join(self.free)}" if self.free else f"{self.file} has none"
                what, where = f"there is no free dimension {dim!r}", f"--dim {dim}={size}"
                fix = similar(dim, self.free) or self._unsized(size) or f"leave out {where}"
                problems.append(Problem(what, where, known, fix))
            elif not 0 <= low <= high:
                problems.append(Problem("a range is empty", f"--dim {dim}={size}", fix=f"write --dim {dim}=LOW..HIGH"))
        for name, shape in self.shapes.items():
            if name not in names:
                known = f"those of {self.file} are {', '.join(names)}" if names else f"{self.file} has none"
                where = f"--shape {name}={','.join(map(str, shape))}"
                problems.append(Problem(f"there is no input {name!r}", where, known, similar(name, names)))
        raise_all(WrongUse, problems)

    def _unsized(self, size: str) -> str:
        """The size that was given, for the free dimensions that have none."""
        names = [name for name in self.free if name.isidentifier() and name not in self.ranges]
        return f"did you mean --dim {','.join(f'{name}={size}' for name in names)}?" if names else ""

    def _shape(self, name: str, shape: tuple[int | str | None, ...] | None) -> tuple[Dim, ...] | None:
        """The shape of an input; None where something is not bound, which is noted."""
        wanted = [size for size in self.shapes[name] if not isinstance(size, tuple)] if name in self.shapes else None
        if wanted is not None:
            self._check_shape(name, shape, wanted)
            given: Sequence[int | str | None] = wanted
        elif shape is None:
            self._open_shape(name, None)
            return None
        else:
            given = shape
        sizes: list[Dim] = []
        for axis, dim in enumerate(given):
            if isinstance(dim, int):
                sizes.append(dim)
            elif dim is not None and (found := self._bound_size(dim)) is not None:
                sizes.append(found)
            elif dim is None or not re.search(r"\w", dim):  # no name, or one such as "?", which stands for several
                self._open_shape(name, tuple(given))
            else:
                for part in self._names_in(dim):
                    self.open.dims.setdefault(part, []).append((name, axis, tuple(given)))
                    self.open.use(f"--dim {part}", f"{dim!r} of input {name!r}")
        return tuple(sizes) if len(sizes) == len(given) else None

    def _open_shape(self, name: str, shape: Shape | None) -> None:
        self.open.shapes[name] = shape
        self.open.use(f"--shape {name}", f"input {name!r}")

    def _bound_size(self, dim: str) -> Dim | None:
        """The size that a name in the file stands for; exporters also write arithmetic, such as 2*time + 1."""
        if dim in self.bound:
            return self.bound[dim]
        try:
            return dimensions.parse(dim, self.bound)
        except (ValueError, SyntaxError):
            return None

    def _names_in(self, dim: str) -> list[str]:
        """The names in arithmetic over names, of which one has to be known otherwise; else just the name."""
        inside = list(dict.fromkeys(re.findall(r"[A-Za-z_]\w*", dim)))
        known = {*self.ranges, *(other for other in self.free if other.isidentifier())}
        table = dict.fromkeys(inside, 2)
        try:
            dimensions.parse(dim, table)
        except (ValueError, SyntaxError):
            return [dim]
        arithmetic = not dim.isidentifier() and (any(name in known for name in inside) or re.search(r"[*+/]", dim))
        return inside if arithmetic and dim not in self.ranges else [dim]

    def _check_shape(self, name: str, shape: tuple[int | str | None, ...] | None, wanted: Sequence[int | str]) -> None:
        where = f"--shape {name}={','.join(map(str, wanted))}"
        if any(isinstance(size, str) and ".." in size for size in wanted):
            named = {f"size{axis}": str(size) for axis, size in enumerate(wanted) if ".." in str(size)}
            sizes = (f"size{axis}" if f"size{axis}" in named else str(size) for axis, size in enumerate(wanted))
            ranges = ",".join(f"{dim}={size}" for dim, size in named.items())
            fix = f"write --shape {name}={','.join(sizes)} --dim {ranges}"
            raise WrongUse(Problem("a shape has a range without a name", where, "the C interface needs the name", fix))
        if shape is None:
            return
        text = ",".join("?" if dim is None else str(dim) for dim in shape)
        clash = len(shape) != len(wanted) or any(
            isinstance(have, int) and isinstance(want, int) and have != want
            for have, want in zip(shape, wanted, strict=False)
        )
        if clash or any(isinstance(want, int) and want < 0 for want in wanted):
            fix = f"leave out {where}: only free dimensions can be given a size"
            if not all(isinstance(have, int) for have in shape):
                given = [*wanted, *[1] * len(shape)] if len(wanted) == len(shape) else [1] * len(shape)
                pairs = zip(shape, given, strict=False)
                likely = [
                    have if isinstance(have, int) else max(1, w) if isinstance(w, int) else w for have, w in pairs
                ]
                fix = f"did you mean --shape {name}={','.join(map(str, likely))}?"
            raise WrongUse(
                Problem(
                    "a shape does not fit the model",
                    where,
                    f"{self.file} says that {name!r} is {text}",
                    fix,
                )
            )


def kind_name(kind: str | None) -> str:
    names = {"sequence_type": "a sequence", "map_type": "a map", "optional_type": "an optional value"}
    return names.get(kind or "", "a value of unknown kind" if kind is None else kind.replace("_", " "))


def _typed(name: str, file: str) -> str:
    """The command that makes an input a tensor of floats; its sizes are asked for afterwards."""
    kind = "onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None)"
    told = f"[v.type.CopyFrom({kind}) for v in m.graph.input if v.name == {name!r}]"
    code = f"import onnx; m = onnx.load({file!r}); {told}; onnx.save(m, 'typed.onnx')"
    return f'declare its type: python -c "{code}" (FLOAT or what it is), then take typed.onnx'


def _symbol_name(text: str, taken: Mapping[str, Dim]) -> str:
    """A name that can stand in expressions, and that no variable in C has."""
    name = f"n_{c_identifier(text)}"
    used = {s.name for dim in taken.values() for s in dimensions.symbols(dim)}
    while name in used:
        name += "_"
    return name
