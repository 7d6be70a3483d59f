"""window_transforms: Fourier transforms apply their window themselves, and read integers directly: frames that are
multiplied beforehand would be copies that contain each sample many times.

After `fuse`, which joins conversion and product.
"""

from __future__ import annotations

from dataclasses import replace

from ...base.dims import static
from ...base.dtypes import DType
from ...expr.ir import Apply, Cast, Expr, Operand
from ...kinds.dft import Dft, result_type
from ...kinds.map import Map
from ...program.ir import CONSTANT, TEMPORARY, Call, Program, View, reads, walk, writes
from ..api import Context


def window_transforms(program: Program, context: Context) -> None:
    read = [view.buffer for item in walk(program.body) for view in reads(item)]
    read += [view.buffer for _, view in program.outputs]
    made = [view.buffer for item in walk(program.body) for view in writes(item)]
    makers = {item.outs[0].buffer: item for item in program.body if isinstance(item, Call)}
    gone: list[Call] = []
    for call in program.body:
        if not isinstance(call, Call) or not isinstance(call.kind, Dft) or call.kind.inverse or len(call.ins) > 2:
            continue
        buffer = call.ins[0].buffer
        maker = makers.get(buffer)
        once = read.count(buffer) == made.count(buffer) == 1 and buffer.role == TEMPORARY
        found = _windowed(maker, call) if maker is not None and once else None
        if maker is not None and found is not None:
            call.ins = (found[0], call.ins[1], found[1])
            call.provenance = tuple(dict.fromkeys((*maker.provenance, *call.provenance)))
            gone.append(maker)
    program.body[:] = [item for item in program.body if not any(item is call for call in gone)]


def _windowed(maker: Call, call: Call) -> tuple[View, View] | None:
    """The frames and the window, where that is what is multiplied."""
    x, product = call.ins[0], maker.kind.expressions()[0] if isinstance(maker.kind, Map) else None
    if x.buffer.dtype.is_narrow_float:
        return None  # the product would be rounded
    whole = x.covers_buffer and maker.outs[0].covers_buffer and x.shape[-1] == 1
    if not whole or not isinstance(product, Apply) or product.function != "mul" or len(product.arguments) != 2:
        return None
    for one, other in (product.arguments, product.arguments[::-1]):
        if not isinstance(other, Operand) or not _is_read(one, product):
            continue
        frames, weights = maker.ins[_operand(one)], maker.ins[other.index]
        turned, spread = frames.reshaped(x.shape), weights.reshaped(x.shape)
        if weights.buffer.role != CONSTANT or turned is None or spread is None or turned.buffer.role == CONSTANT:
            continue
        around = zip(spread.shape[:-2], spread.strides[:-2], strict=True)
        if result_type(frames.buffer.dtype) is x.buffer.dtype and all(n == 1 or step == 0 for n, step in around):
            return turned, replace(spread, shape=(static(x.shape[-2]),), strides=(spread.strides[-2],))
    return None


def _is_read(expr: Expr, product: Expr) -> bool:
    """An operand, as floats of the product's type."""
    inner = expr.argument if isinstance(expr, Cast) else expr
    return isinstance(inner, Operand) and expr.dtype is product.dtype and (inner is expr or _is_whole(inner.dtype))


def _is_whole(dtype: DType) -> bool:
    return dtype.is_integer and not dtype.is_packed


def _operand(expr: Expr) -> int:
    inner = expr.argument if isinstance(expr, Cast) else expr
    assert isinstance(inner, Operand)  # `_is_read`
    return inner.index
