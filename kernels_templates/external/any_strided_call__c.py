"""external in portable C: the pointers, shapes and strides of a call, handed to a function of the user's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mccompile.base.dims import upper
from mccompile.base.dtypes import f32, i64
from mccompile.base.marked import listed
from mccompile.base.tensor import Shape, TensorType
from mccompile.expr.dims_c import dim_c
from mccompile.expr.scalar_c import literal_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, View, supports_types
from mccompile.kinds.external import External

_PLAIN = " _-.,:;/+*()[]"


class ExternalCall(Kernel):
    kind = External

    def cases(self) -> Sequence[Case]:
        def case(name: str, shape: tuple[int, ...], strided: bool = False, **options: Any) -> Case:
            given = (("alpha", (0.5, -1.0)), ("axes", (-1, 2)), ("mode", 'a "b"\\'))
            kind = External("mcc_external_copy", "mcc_external.h", given, (1,), 8, 16, strided)
            return Case(name, kind, (TensorType(f32, shape),), (TensorType(f32, shape),), **options)

        return [
            case("dense", (2, 3, 4)),
            case("strided", (2, 3, 4, 5), True, permute={0: (0, 2, 3, 1)}, permute_outs={0: (3, 0, 1, 2)}),
            case("number", ()),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call)
        if reason:
            return No(reason)
        kind = call.of(External)
        ins, outs = range(len(call.ins)), range(len(call.outs))
        return Needs(
            dense=frozenset() if kind.strided else frozenset(ins),
            dense_outs=frozenset() if kind.strided else frozenset(outs),
            align=dict.fromkeys(ins, kind.align),
            align_outs=dict.fromkeys(outs, kind.align),
            scratch=kind.workspace,
            scratch_align=max(16, kind.align),
            symbols=True,
        )

    def cost(self, call: Call, target: Target) -> Cost:
        cycles = call.of(External).cycles
        return Cost(cycles or sum(upper(view.type.count) for view in call.outs) * target.machine.element, code=100)

    def failure(self, call: Call) -> str:
        return "MCC_ERR_ACCELERATOR" if call.of(External).accelerator else ""

    def files(self, call: Call) -> Mapping[str, Path]:
        kind = call.of(External)
        if not kind.include or _is_ours(kind.include):
            return {}
        path = Path(kind.include)
        beside = [path.with_name(f"{path.stem}_stand_in.h")] if kind.accelerator else []
        return {file.name: file for file in (path, *beside)}

    def headers(self, call: Call) -> frozenset[str]:
        include = call.of(External).include
        return frozenset(Path(include).name for _ in self.files(call))

    def label(self, call: Call) -> str:
        return f"call_{call.of(External).function}"

    def context(self, call: Call) -> Mapping[str, Any]:
        kind = call.of(External)
        outs, ins = self.parameter_names(call)
        tables: list[str] = []
        results = [_tensor(name, view, tables) for name, view in zip(outs, call.outs, strict=True)]
        operands = [_tensor(name, view, tables) for name, view in zip(ins, call.ins, strict=True)]
        for place in kind.absent:
            operands.insert(place, "{NULL, NULL, NULL, 0, 0}")
        attributes = [_attribute(place, *each, tables) for place, each in enumerate(kind.attributes)]
        counts = (len(results), len(operands), len(attributes))
        pointers = ["results", "operands" if operands else "NULL", "attributes" if attributes else "NULL"]
        workspace = ["scratch" if kind.workspace else "NULL", str(kind.workspace)]
        return {
            "callee": kind.function,
            "declared": not kind.include,
            "fails": bool(kind.accelerator),
            "tables": tables,
            "results": results,
            "operands": operands,
            "attributes": attributes,
            "fields": [*pointers, *workspace, *map(str, counts)],
            "listed": listed,
        }


def _is_ours(include: str) -> bool:
    return include.startswith("mcc_")


def _tensor(name: str, view: View, tables: list[str]) -> str:
    """An initializer of mcc_operand or mcc_result; its sizes are arrays in front."""
    shape, strides = _sizes(f"shape_{name}", view.shape, tables), _sizes(f"strides_{name}", view.strides, tables)
    return f"{{{listed([name, shape, strides, str(len(view.shape)), str(view.buffer.dtype.onnx)])}}}"


def _sizes(name: str, sizes: Shape, tables: list[str]) -> str:
    if not sizes:
        return "NULL"
    storage = "static const" if all(isinstance(size, int) for size in sizes) else "const"
    tables.append(f"{storage} mcc_index {name}[{len(sizes)}] = {{{listed(map(dim_c, sizes))}}};")
    return name


def _attribute(place: int, name: str, value: tuple[int, ...] | tuple[float, ...] | str, tables: list[str]) -> str:
    """An initializer of mcc_attribute; its numbers are an array in front."""
    if isinstance(value, str):
        return f"{{{listed([_text(name), 'NULL', 'NULL', _text(value), '0'])}}}"
    whole = all(isinstance(number, int) for number in value)
    array = f"numbers{place}" if value else "NULL"
    if value:
        numbers = listed(literal_c(number, i64 if whole else f32) for number in value)
        tables.append(f"static const {'int64_t' if whole else 'float'} {array}[{len(value)}] = {{{numbers}}};")
    return f"{{{listed([_text(name), *((array, 'NULL') if whole else ('NULL', array)), 'NULL', str(len(value))])}}}"


def _text(text: str) -> str:
    """A C literal; what is not a plain letter as its octal number."""
    letters = (chr(c) if c < 128 and (chr(c).isalnum() or chr(c) in _PLAIN) else f"\\{c:03o}" for c in text.encode())
    return f'"{"".join(letters)}"'
