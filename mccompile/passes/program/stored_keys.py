"""The stored form of keys and values of attention: f16, or int8 with a scale for each row, which becomes a factor of
the row's score (keys) or share (values)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...base.dims import Dim, bounds, upper
from ...base.dtypes import bf16, f16, f32, i8
from ...expr.ir import Expr, apply, cast, operand, substitute
from ...kinds.attention import Attention
from ...kinds.map import Map
from ...program.ir import TEMPORARY, Buffer, Call, View
from ...program.retarget import fills

_STORED = (f16, bf16, i8)
_KEYS, _VALUES = 1, 2


def read_as_stored(call: Call, made: Mapping[Buffer, Call], readers: Mapping[Buffer, int]) -> tuple[Call, list[Call]]:
    """The call without what widens its keys and values for nobody else, and what that was."""
    gone = []
    for side in (_KEYS, _VALUES):
        producer = made.get(call.ins[side].buffer)
        if producer is None or readers.get(call.ins[side].buffer) != 1 or not _is_widening(producer):
            continue
        changed = _changed(call, side, producer)
        if changed is not None:
            call = changed
            gone.append(producer)
    return call, gone


def _is_widening(call: Call) -> bool:
    out = call.outs[0]
    if not isinstance(call.kind, Map) or len(call.outs) != 1 or out.buffer.role != TEMPORARY or not fills(out):
        return False
    dtypes = [view.buffer.dtype for view in call.ins]
    if not dtypes or dtypes[0] not in _STORED or dtypes[1:] not in ([], [f32]):
        return False
    level = cast(operand(0, dtypes[0]), f32)
    return call.kind.expressions() == (level if len(dtypes) == 1 else apply("mul", level, operand(1, f32)),)


def _changed(call: Call, side: int, producer: Call) -> Call | None:
    kind, view, out = call.of(Attention), call.ins[side], producer.outs[0]
    seen = [_seen(view, out, source) for source in producer.ins]
    found = [each for each in seen if each is not None]
    if len(found) != len(seen):
        return None
    stored, *scales = found
    ins = [*call.ins[:side], stored, *call.ins[side + 1 :]]
    for scale in scales:
        inner, along = (-2, -1) if side == _KEYS else (-1, -2)
        if scale.strides[inner] != 0:
            return None
        factor = replace(
            scale,
            shape=(*call.outs[0].shape[:-1], view.shape[along]),
            strides=(*scale.strides[:-2], 0, scale.strides[along]),
        )
        if side == _VALUES:
            ins.insert(kind.fixed, factor)
            kind = replace(kind, scaled=True)
        else:
            place = 3 + kind.operands
            product = apply("mul", operand(0, f32), operand(1 + kind.operands, f32))
            ins.insert(place, factor)
            score: Expr = operand(0, f32) if kind.score is None else kind.score
            known = {n: operand(n, ins[2 + n].buffer.dtype) for n in range(1, kind.operands + 1)}
            kind = replace(kind, score=substitute(score, {0: product, **known}), operands=kind.operands + 1)
    return replace(call, kind=kind, ins=tuple(ins))


def _seen(view: View, out: View, source: View) -> View | None:
    """`source`, over the shape of `out`, as it is seen through a view of `out` or of a part of it."""
    if view.offset != out.offset:
        return None
    free = list(range(len(out.shape)))
    strides: list[Dim] = []
    for size, stride in zip(view.shape, view.strides, strict=True):
        whole = [size == dim or upper(size) <= bounds(dim)[0] for dim in out.shape]
        fits = [axis for axis in free if whole[axis] and out.strides[axis] == stride]
        if size == 1 or stride == 0:
            strides.append(0)
        elif fits:
            strides.append(source.strides[fits[0]])
            free.remove(fits[0])
        else:
            return None
    return View(source.buffer, view.shape, tuple(strides), source.offset)
