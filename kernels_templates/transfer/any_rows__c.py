"""transfer in portable C: rows from one memory to the other by copies that are begun and awaited, as many bytes at a
time as lie one after the other in both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import f32, string, u8
from mccompile.base.tensor import TensorType
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, View, static_views
from mccompile.kinds.transfer import Transfer


class TransferRows(Kernel):
    kind = Transfer
    copies = True

    def cases(self) -> Sequence[Case]:
        def case(name: str, axis: int, type: TensorType, *way: bool, **options: Any) -> Case:
            return Case(name, Transfer(axis, *way), (type,), (type,), **options)

        rows_first = {0: (2, 0, 1, 3)}
        return [
            case("vectors", 0, TensorType(f32, (6, 2))),
            case("planes", 2, TensorType(u8, (1, 3, 5, 4))),
            case("to_rows", 2, TensorType(f32, (1, 2, 4, 3)), permute_outs=rows_first),
            case("of_rows", 2, TensorType(f32, (1, 2, 4, 3)), permute=rows_first),
            case("early", 2, TensorType(f32, (1, 2, 7, 3)), True, True, permute_outs=rows_first),
            case("behind", 0, TensorType(u8, (5, 4)), True),
            case("across", 1, TensorType(u8, (2, 3, 4)), permute={0: (2, 1, 0)}),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = static_views(call)
        if not reason and (call.outs[0].buffer.dtype.bits % 8 or call.outs[0].buffer.dtype is string):
            reason = "elements are not bytes of their own"
        return No(reason) if reason else Needs(rows=frozenset({call.of(Transfer).axis}))

    def cost(self, call: Call, target: Target) -> Cost:
        size = static(call.outs[0].type.count) * call.outs[0].buffer.dtype.bits // 8
        return Cost(size * target.machine.element / 4, code=80)

    def units(self, call: Call) -> Sequence[int]:
        return ()  # one copy at a time is on its way

    def queued(self, call: Call) -> bool:
        return call.of(Transfer).queued

    def moves(self, call: Call, begin: int, end: int) -> int:
        context = self.context(call)
        if not context["at_once"]:
            return (end - begin) * prod(int(loop["size"]) for loop in context["loops"])
        return 1 + sum(any(row % lines == 0 for lines in context["rings"]) for row in range(begin + 1, end))

    def left(self, call: Call, begin: int, end: int) -> int:
        """The last of its copies."""
        context = self.context(call)
        if not context["early"] or end == context["rows"]:
            return 0
        since = [(end - 1) // lines * lines for lines in context["rings"]]  # it goes on at the begin of a ring
        rows = end - max([begin, *since]) if context["at_once"] else 1
        return rows * int(context["bytes"])

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_copy.h"})

    def context(self, call: Call) -> Mapping[str, Any]:
        axis, x, y = call.of(Transfer).axis, call.ins[0], call.outs[0]
        rows, bits = static(x.shape[axis]), x.buffer.dtype.bits
        run, others = _run(x, y, axis)
        loops = [{"counter": f"i{number}", "size": static(x.shape[a])} for number, a in enumerate(others)]

        def place(name: str, view: View) -> str:
            line = f"begin % {view.lines}" if 0 < view.lines < rows else "begin"
            terms = [f"{line} * {view.strides[axis]}"] if view.lines != 1 else []
            return " + ".join([name, *terms, *(f"i{number} * {view.strides[a]}" for number, a in enumerate(others))])

        return {
            "queued": call.of(Transfer).queued,
            "early": call.of(Transfer).early,
            "rows": rows,
            "bytes": run * bits // 8,
            "loops": loops,
            "x": place("x", x),
            "y": place("y", y),
            "rings": [view.lines for view in (x, y) if 0 < view.lines < rows],
            "by_rows": call.rows is not None,
            "at_once": 1 not in (x.lines, y.lines)
            and not others
            and static(x.strides[axis]) == static(y.strides[axis]) == run,
        }


def _run(x: View, y: View, axis: int) -> tuple[int, list[int]]:
    """Elements that lie one after the other in a row of both, and the other axes of it, the outermost first."""
    axes = [a for a in range(len(x.shape)) if a != axis and static(x.shape[a]) > 1]
    axes.sort(key=lambda a: (-static(y.strides[a]), -static(x.strides[a])))
    run = 1
    while axes and static(x.strides[axes[-1]]) == static(y.strides[axes[-1]]) == run:
        run *= static(x.shape[axes.pop()])
    return run, axes
