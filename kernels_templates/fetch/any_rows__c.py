"""fetch in portable C: rows from a function of the program's, as many at a time as lie one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import f32, u8
from mccompile.base.tensor import TensorType, dense_strides
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, View, static_views
from mccompile.kinds.fetch import Fetch


class FetchRows(Kernel):
    kind = Fetch
    asks = True

    def cases(self) -> Sequence[Case]:
        def case(name: str, axis: int, type: TensorType, **options: Any) -> Case:
            return Case(name, Fetch(axis), (type,), (type,), **options)

        rows_first = {0: (2, 0, 1, 3)}
        return [
            case("last", 1, TensorType(u8, (1, 5, 4, 3))),
            case("first", 2, TensorType(f32, (1, 2, 4, 3)), permute=rows_first, permute_outs=rows_first),
            case("vectors", 0, TensorType(f32, (6, 2))),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = static_views(call)
        if not reason and call.outs[0].buffer.dtype.bits % 8:
            reason = "elements share bytes"
        if not reason and not _is_by_rows(call.outs[0], call.of(Fetch).axis):
            reason = "a row does not lie in one piece"
        return No(reason) if reason else Needs(rows=frozenset({call.of(Fetch).axis}))

    def cost(self, call: Call, target: Target) -> Cost:
        size = static(call.outs[0].type.count) * call.outs[0].buffer.dtype.bits // 8
        return Cost(size * target.machine.element / 4, code=60)

    def units(self, call: Call) -> Sequence[int]:
        return ()  # nobody else calls functions of the program's

    def context(self, call: Call) -> Mapping[str, Any]:
        axis, y = call.of(Fetch).axis, call.outs[0]
        rows, stride = static(y.shape[axis]), static(y.strides[axis])
        return {
            "rows": rows,
            "stride": stride,
            "lines": y.lines or rows,
            "by_rows": call.rows is not None,
            "at_once": stride * rows == static(y.type.count),
        }


def _is_by_rows(view: View, axis: int) -> bool:
    """Has each row its elements in order, one after the other, and none those of another one?"""
    shape, strides = list(view.shape), list(view.strides)
    height, stride = shape.pop(axis), static(strides.pop(axis))
    dense = dense_strides(tuple(shape))
    size = static(view.type.count) // max(static(height), 1)
    lies = all(have == want or dim == 1 for dim, have, want in zip(shape, strides, dense, strict=True))
    return lies and (stride >= size or height == 1)
