"""What a run tells of itself, as C: how long each step takes (`--profile`), and what it leaves in memory
(`--dump-values`). Nothing is printed where neither was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.dims import Dim, static
from ..base.dtypes import string
from ..base.provenance import show
from ..base.tensor import dense_strides
from ..expr.dims_c import dim_c
from ..plan.ir import Plan, Step, StepResult, Tensor
from ..plan.sizes import of_address, of_dims, of_step
from .addresses import IN_STRUCT, pointer

_WHOLE = "-1, 0"  # no axis of rows, and none of them


def timed(step: Step, calls: Sequence[str], indent: str) -> list[str]:
    """The calls of a step, with what counts how long they take or says that they have ended."""
    if step.ticks:
        calls = [*calls, f"mcc_host_tick({step.number});"]
    if not step.timed:
        return [f"{indent}{call}" for call in calls]
    inner = indent + "    "
    return [
        f"{indent}{{",
        f"{inner}const uint32_t began = MCC_TICKS();",
        *(f"{inner}{call}" for call in calls),
        f"{inner}m->ticks[{step.number}] += MCC_TICKS_SINCE(began);",
        f"{indent}}}",
    ]


def handed_out(step: Step, indent: str) -> list[str]:
    """What a step has made, for the program's callback."""
    return [line for made in step.made if made.axis is None for line in _made(step, made, indent)]


def rows_handed_out(step: Step, indent: str, begin: str, end: str) -> list[str]:
    """The rows from `begin` to `end`, one at a time, of what is never there as a whole."""
    lines: list[str] = []
    for made in step.made:
        if made.axis is not None:
            lines.append(f"{indent}for (mcc_index row = {begin}; row < {end}; ++row) {{")
            lines += [*_row(step, made, made.axis, indent + "    "), f"{indent}}}"]
    return lines


def _row(step: Step, made: StepResult, axis: int, indent: str) -> list[str]:
    dtype = made.type.dtype
    stride = static(made.strides[axis]) * dtype.bits // 8
    row = f"row % {made.lines}" if made.lines else "row"
    place = f"{pointer(made.address, 'uint8_t', True)} + ({row}) * {stride}"
    kind = _kind(made)
    shape = tuple(1 if place == axis else dim for place, dim in enumerate(made.type.shape))
    call = _call(kind, made.name, step.number, dtype.onnx, dtype.bits, made.type.rank, f"{axis}, row", place)
    return [f"{indent}static const mcc_index {_lists(shape, made.strides, '')};", f"{indent}{call}"]


def _made(step: Step, made: StepResult, indent: str) -> list[str]:
    names = of_address(made.address) | of_dims((*made.type.shape, *made.strides))
    declared = "" if names <= of_step(step) and not step.shared else IN_STRUCT
    kind = _kind(made)
    place = pointer(made.address, "uint8_t", True, declared)
    dtype = made.type.dtype
    call = _call(kind, made.name, step.number, dtype.onnx, dtype.bits, made.type.rank, _WHOLE, place)
    return _block(call, made.type.shape, made.strides, declared, indent)


def _kind(made: StepResult) -> str:
    if made.is_input:
        return "MCC_DUMP_INPUT"
    return "MCC_DUMP_VALUE" if made.is_value else "MCC_DUMP_BUFFER"


def _call(kind: str, name: str, step: int, type: int, bits: int, rank: int, row: str, place: str) -> str:
    return f"DUMP({kind}, {_text(name)}, {step}u, {type}u, {bits}u, {rank}u, {row}, {place});"


def _block(call: str, shape: Sequence[Dim], strides: Sequence[Dim], sizes: str, indent: str) -> list[str]:
    inner = indent + "    "
    fixed = "static " if all(isinstance(dim, int) for dim in (*shape, *strides)) else ""
    lists = _lists(shape, strides, sizes)
    return [f"{indent}{{", f"{inner}{fixed}const mcc_index {lists};", f"{inner}{call}", f"{indent}}}"]


def _lists(shape: Sequence[Dim], strides: Sequence[Dim], sizes: str) -> str:
    return ", ".join(
        f"{name}[] = {{{', '.join(dim_c(dim, sizes) for dim in dims) or '1'}}}"
        for name, dims in (("dump_shape", shape), ("dump_strides", strides))
    )


def given(plan: Plan) -> str:
    """Inputs and states, as they are when a run begins."""
    lines: list[str] = []
    states = [state.tensor for state in plan.states]
    for kind, tensors in (("MCC_DUMP_INPUT", plan.inputs), ("MCC_DUMP_STATE", states)):
        for tensor in (t for t in tensors if t.type.dtype is not string and t.rows is None):
            call = _tensor(kind, tensor)
            lines += _block(call, tensor.type.shape, dense_strides(tensor.type.shape), IN_STRUCT, "    ")
    return "\n".join(lines)


def _tensor(kind: str, tensor: Tensor) -> str:
    type = tensor.type
    place = pointer(tensor.address, "uint8_t", True, IN_STRUCT)
    return _call(kind, tensor.name, 0, type.dtype.onnx, type.dtype.bits, type.rank, _WHOLE, place)


def step_names(plan: Plan) -> list[str]:
    """As C strings, by the numbers of steps."""
    return [_text(show(step.provenance, 2) or step.op) for step in plan.steps()]


def in_report(plan: Plan, step: Step) -> dict[str, Any]:
    """What report.json says of what a step leaves in memory."""
    if not plan.dumped:
        return {}
    return {"made": [_entry(made) for made in step.made]}


def _entry(made: StepResult) -> dict[str, Any]:
    return {
        "name": made.name,
        "is_value": made.is_value,
        "dtype": made.type.dtype.name,
        "shape": [dim if isinstance(dim, int) else str(dim) for dim in made.type.shape],
        "strides": [stride if isinstance(stride, int) else str(stride) for stride in made.strides],
        **({"also": list(made.also)} if made.also else {}),
        **({"rows": made.axis} if made.axis is not None else {}),
    }


def _text(name: str) -> str:
    """A C string: letters outside of ASCII as their bytes, each in octal."""
    plain = (chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in name.encode())
    return f'"{"".join(plain)}"'
