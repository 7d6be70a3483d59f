"""dft in portable C: one pass for each prime factor of the length, between two workspaces that change places, so that
results come out in order. Pairs of real numbers are transformed as one complex number where the length is even.

Inverse transforms are forward ones of numbers whose parts have changed places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import static, upper
from mccompile.base.dtypes import DType, bf16, f16, f32, f64, i8, i16
from mccompile.base.records import dataclass
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c, nest
from mccompile.codegen.rows import row_by_row
from mccompile.expr.scalar_c import literal_c, load_c, store_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, static_views, supports_types
from mccompile.kinds.dft import Dft, result_type, work_type


@dataclass(frozen=True)
class Pass:
    """`groups` times `done` sets of `radix` numbers become as many transforms of that length."""

    radix: int
    groups: int
    done: int


class DftStockham(Kernel):
    kind = Dft

    def cases(self) -> Sequence[Case]:
        def case(
            name: str, kind: Dft, x: tuple[int, ...], dtype: DType = f32, window: bool = False, **options: Any
        ) -> Case:
            parts = 1 if kind.inverse and kind.onesided else 2
            ins = [TensorType(dtype, x), TensorType(work_type(dtype), (kind.length, 2))]
            if window:
                ins.append(TensorType(result_type(dtype), x[-2:-1]))
            out = TensorType(result_type(dtype), (*x[:-2], kind.bins, parts))
            values = {1: roots(kind.length).astype(ins[1].dtype.numpy)}
            return Case(name, kind, tuple(ins), (out,), constant=frozenset({1}), values=values, error=1e-6, **options)

        every = [case(f"of_{n}", Dft(n), (2, n, 2)) for n in (1, 2, 3, 4, 5, 6, 7, 8, 12, 20, 30, 49, 64, 77)]
        return [
            *every,
            *(case(f"real_{n}", Dft(n, onesided=True), (2, n, 1)) for n in (1, 2, 3, 4, 6, 9, 16, 30)),
            *(case(f"real_back_{n}", Dft(n, True, True), (2, n // 2 + 1, 2)) for n in (1, 2, 3, 4, 6, 9, 16, 30)),
            case("inverse", Dft(12, True), (3, 12, 2), f64, permute={0: (1, 0, 2)}, permute_outs={0: (2, 0, 1)}),
            case("inverse_of_real", Dft(6, True), (2, 6, 1)),
            case("all_of_real", Dft(10), (2, 10, 1)),
            case("all_of_two", Dft(2), (2, 2, 1)),
            case("filled", Dft(10), (2, 7, 2)),
            case("filled_real", Dft(10, onesided=True), (2, 7, 1)),
            case("cut", Dft(6), (2, 9, 2)),
            case("cut_real", Dft(6, onesided=True), (2, 9, 1)),
            case("filled_back", Dft(12, True, True), (2, 3, 2)),
            case("filled_back_odd", Dft(11, True, True), (2, 3, 2)),
            case("cut_back", Dft(8, True, True), (2, 9, 2)),
            case("cut_back_odd", Dft(7, True, True), (2, 9, 2)),
            case("window", Dft(16, onesided=True), (2, 3, 16, 1), window=True),
            case("window_complex", Dft(6), (2, 6, 2), window=True),
            case("integers", Dft(16, onesided=True), (2, 3, 12, 1), i16, window=True, ranges={0: (-999.0, 999.0)}),
            case("complex_bytes", Dft(6), (2, 6, 2), i8),
            case("f16", Dft(8), (2, 8, 1), f16),
            case("bf16", Dft(9, True), (9, 2), bf16),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = static_views(call, *call.ins[1:]) or supports_types(call)
        if not reason and not isinstance(call.ins[0].shape[-2], int):
            reason = f"the signal is {call.ins[0].shape[-2]} long, known only at run time"
        if reason:
            return No(reason)
        scratch = 4 * _room(call) * work_type(call.ins[0].buffer.dtype).bits // 8
        return Needs(scratch=scratch, rows=frozenset(range(len(call.outs[0].shape) - 2)))

    def cost(self, call: Call, target: Target) -> Cost:
        points = _points(call)
        around = upper(call.outs[0].type.count) / (2 * call.of(Dft).bins)
        work = sum(step.radix if step.radix > 5 else 2 for step in _passes(points)) + 4
        return Cost(around * points * work * 2 * target.machine.element, code=800)

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"string.h"})

    def unpassed(self, call: Call) -> frozenset[str]:
        """Short transforms turn by numbers that are written out."""
        points = _points(call)
        looks_up = points != call.of(Dft).length or any(step.groups > 1 or step.radix > 5 for step in _passes(points))
        return frozenset() if looks_up else frozenset({"table"})

    def context(self, call: Call) -> Mapping[str, Any]:
        outs, ins = self.parameter_names(call)
        by_rows = row_by_row(call, outs, ins, whole=range(1, len(ins)))
        kind, (x, table, *window), y = call.of(Dft), by_rows.ins, by_rows.outs[0]
        x_name, y_name = by_rows.in_names[0], by_rows.out_names[0]
        dtype, points = x.buffer.dtype, _points(call)
        work, result = work_type(dtype), result_type(dtype)
        outer = len(y.shape) - 2
        around = nest(y.shape[:outer], [y, x], prefix="n")
        counters = [loop.counter for loop in around.loops]

        def load(place: str, part: int) -> str:
            text = load_c(dtype, x_name, index_c([*around.strides[1], *x.strides[-2:]], [*counters, place, str(part)]))
            if not dtype.is_float:
                text = f"({result.compute_c}){text}"
            if window:
                text += f" * {load_c(result, 'window', index_c(window[0].strides, [place]))}"
            return text

        def store(place: str, part: int, value: str) -> str:
            index = index_c([*around.strides[0], *y.strides[-2:]], [*counters, place, str(part)])
            return store_c(result, y_name, index, value)

        def root(place: str, part: int, step: int = 1) -> str:
            return f"table[{index_c([table.strides[0] * step, table.strides[1]], [place, str(part)])}]"

        passes = _passes(points)
        return {
            "kind": kind,
            "loops": around.loops,
            "by_rows": call.rows is not None,
            "pointers": by_rows.pointers,
            "points": points,
            "room": _room(call),
            "packed": points != kind.length,
            "passes": passes,
            "spread": kind.length // points,
            "size": static(x.shape[-2]),
            "is_real": x.shape[-1] == 1,
            "halves": kind.inverse and kind.onesided,
            "type": work.compute_c,
            "number": lambda value: literal_c(value, work),
            "index": index_c,
            "load": load,
            "store": store,
            "root": root,
        }

    def label(self, call: Call) -> str:
        kind = call.of(Dft)
        return f"{'i' * kind.inverse}{'r' * kind.onesided}dft_{kind.length}"


def roots(length: int) -> np.ndarray:
    angles = -2 * np.pi * np.arange(length) / length
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def _points(call: Call) -> int:
    """The length of the complex transform: half where pairs of real numbers can be taken for complex ones."""
    kind = call.kind
    assert isinstance(kind, Dft)
    real_in = call.ins[0].shape[-1] == 1 and not kind.inverse
    real_out = kind.inverse and kind.onesided
    return kind.length // 2 if kind.length % 2 == 0 and (real_in or real_out) else kind.length


def _room(call: Call) -> int:
    """How many numbers each of the four parts of the workspace holds."""
    points = _points(call)
    return points + (points != call.of(Dft).length)


def _passes(points: int) -> list[Pass]:
    radices = []
    left = points
    for radix in (4, 2, 3, 5):
        while left % radix == 0:
            radices.append(radix)
            left //= radix
    radix = 7
    while left > 1:
        if radix * radix > left:
            radix = left
        if left % radix == 0:
            radices.append(radix)
            left //= radix
        else:
            radix += 2
    passes, done = [], 1
    for radix in radices:
        passes.append(Pass(radix, points // (done * radix), done))
        done *= radix
    return passes
