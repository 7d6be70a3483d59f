"""What is left of an epilogue once sums are rescaled to 8 bits, as C over the results `found` of all channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.dims import static
from ...base.dtypes import i64
from ...expr.integer_vector_c import integer_refusal, to_integer_statements
from ...expr.ir import Expr, operands_used, walk
from ...expr.scalar_c import load_c, store_c, to_statements
from ...kernels.api import View
from .dot import Rescaling

Placed = tuple[str, View, str]  # the C name of an operand, and the index of channel o in it


def scalar_rest(rest: Expr, operands: Sequence[Placed], result: tuple[View, str]) -> dict[str, Any]:
    """Channel by channel, from `found[o]`."""
    loads = ["found[o]", *(load_c(view.buffer.dtype, name, place) for name, view, place in operands)]
    lines, value = to_statements(rest, loads, local="v")
    view, place = result
    return {"rest_lines": lines, "rest_store": store_c(view.buffer.dtype, "y", place, value)}


def vector_rest(found: Rescaling, operands: Sequence[Placed], result: tuple[View, str]) -> dict[str, Any] | None:
    """Four channels at a time from `found` on, in vectors of mcc_helium.h, if these can do it. `rest_before` is said
    once, `rest_begin` at the first channel of a position."""
    assert found.rest is not None
    used, (y, place) = operands_used(found.rest), result
    wide = any(node.dtype is i64 or node.dtype.is_float for node in walk(found.rest))
    if static(y.strides[1]) != 1 or wide or integer_refusal(found.rest):
        return None
    loads, before = [f"mcc_helium_next_{found.dtype}(&from)"], []
    c_type = found.dtype.storage_c
    begin = [f"const {c_type} *from = found;", f"{y.buffer.dtype.storage_c} *to = y + {place};"]
    for number, (name, view, at) in enumerate(operands, 1):
        dtype, moves = view.buffer.dtype, any(static(stride) for stride in view.strides)
        loads.append(f"mcc_helium_next_{dtype}(&at_{name})" if moves else f"all_{name}")
        if number not in used:
            continue
        if not moves:
            before.append(f"const mcc_i32q all_{name} = mcc_set_i32q({name}[0]);")
        elif static(view.strides[1]) == 1:
            begin.append(f"const {dtype.storage_c} *at_{name} = {name} + {at};")
        else:
            return None
    lines = to_integer_statements(found.rest, loads, 4, "mcc_helium_put_{0}(&to, {1});", local="v", of="i32q")
    return {"rest_before": before, "rest_begin": begin, "rest_lines": lines}
