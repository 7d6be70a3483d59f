"""deform_conv in portable C: for each position of the result all taps of all channels are interpolated into a
workspace, which every channel of the result is then a sum of products over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from mccompile.base.dims import static, upper
from mccompile.base.dtypes import DType, bf16, f16, f32, f64
from mccompile.base.tensor import TensorType
from mccompile.codegen.cases import RELU_OF_SUM
from mccompile.codegen.loops import index_c
from mccompile.expr.code import Code
from mccompile.expr.dims_c import size_c
from mccompile.expr.ir import cast, operand
from mccompile.expr.scalar_c import literal_c, load_c, store_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, supports_types
from mccompile.kinds.deform_conv import DeformConv


class DeformConvPlaces(Kernel):
    kind = DeformConv

    def cases(self) -> Sequence[Case]:
        def case(
            name: str,
            kind: DeformConv,
            x: tuple[int, ...],
            channels: int,
            out: tuple[int, ...],
            groups: int = 1,
            extras: int = 0,
            dtype: DType = f32,
            **options: Any,
        ) -> Case:
            taps = prod(kind.kernel)
            ins = [TensorType(dtype, x), TensorType(dtype, (channels, x[1] // kind.group, taps))]
            ins.append(TensorType(dtype, (x[0], groups, taps, len(out), *out)))
            if kind.masked:
                ins.append(TensorType(dtype, (x[0], groups, taps, *out)))
            y = TensorType(dtype, (x[0], channels, *out))
            return Case(name, kind, (*ins, *(y for _ in range(extras))), (y,), **options)

        plain = DeformConv((3, 3), (1, 1), (1, 1), (1, 1), 1, f32)
        halves = [
            case(
                dtype.name,
                DeformConv((2, 2), (1, 1), (1, 1), (0, 0), 1, f32, False, cast(operand(0, f32), dtype)),
                (1, 2, 4, 4), 2, (3, 3), dtype=dtype,
            )
            for dtype in (f16, bf16)
        ]  # fmt: skip
        return [
            case("plain", plain, (2, 4, 5, 6), 3, (5, 6), permute={0: (0, 2, 3, 1)}),
            case("groups", DeformConv((2, 3), (2, 1), (1, 2), (0, 2), 2, f32, True), (1, 4, 5, 6), 6, (2, 6), 2),
            case("epilogue", DeformConv((3, 3), (1, 1), (1, 1), (1, 1), 1, f32, True, RELU_OF_SUM),
                 (1, 2, 4, 4), 3, (4, 4), extras=1),
            case("far_away", plain, (1, 2, 4, 4), 2, (4, 4), ranges={2: (-9.0, 9.0)}),
            case("one_axis", DeformConv((3,), (1,), (1,), (1,), 1, f64), (2, 3, 7), 2, (7,), dtype=f64),
            case("three_axes", DeformConv((2, 1, 2), (1, 1, 1), (1, 1, 1), (0, 0, 0), 1, f32), (1, 2, 3, 2, 3), 2,
                 (2, 2, 2)),
            case("of_one", DeformConv((1, 1), (1, 1), (1, 1), (0, 0), 1, f32), (1, 1, 1, 1), 1, (1, 1)),
            *halves,
        ]  # fmt: skip

    def match(self, call: Call, target: Target) -> No | Needs:
        """The number of images may be known at run time."""
        kind, x = call.of(DeformConv), call.ins[0]
        unknown = [dim for dim in (*x.shape[1:], *x.strides[1:]) if not isinstance(dim, int)]
        reason = f"the size {unknown[0]} is known only at run time" if unknown else supports_types(call)
        if reason:
            return No(reason)
        return Needs(scratch=kind.accumulator.nbytes(static(x.shape[1]) * prod(kind.kernel)))

    def cost(self, call: Call, target: Target) -> Cost:
        samples = upper(call.ins[2].type.count) * static(call.ins[0].shape[1])
        return Cost((upper(call.macs) + 4 * samples) * target.machine.element, code=900)

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, ins, y = call.of(DeformConv), call.ins, call.outs[0]
        names = self.parameter_names(call)[1]
        x, w, offset = ins[:3]
        rank, work = len(kind.kernel), kind.accumulator
        dtype = x.buffer.dtype
        counters = [f"o{axis}" for axis in range(rank)]
        taps, groups = prod(kind.kernel), static(offset.shape[1])

        def moved(axis: int) -> str:
            return load_c(dtype, "offset", index_c(offset.strides, ["n", "g", "k", str(axis), *counters]))

        axes = [
            {
                "n": axis,
                "size": static(x.shape[2 + axis]),
                "out": static(y.shape[2 + axis]),
                "kernel": kind.kernel[axis],
                "place": index_c(
                    [kind.strides[axis], kind.dilations[axis]], [f"o{axis}", f"k{axis}"], -kind.pads[axis]
                ),
                "moved": moved(axis),
            }
            for axis in range(rank)
        ]
        corners = []
        for sides in product((0, 1), repeat=rank):
            high = [f"inside{axis}_{side}" for axis, side in enumerate(sides)]
            shares = [Code(f"part{axis}") if side else Code(f"{literal_c(1, work)} - part{axis}", loose=True)
                      for axis, side in enumerate(sides)]  # fmt: skip
            share = " * ".join(part.operand for part in shares) if rank > 1 else shares[0].text
            places = [f"(low{a} + 1)" if side else f"low{a}" for a, side in enumerate(sides)]
            corners.append({"inside": " && ".join(high), "share": share, "at": index_c(x.strides[2:], places)})
        element = index_c([x.strides[0], x.strides[1], 1], ["n", "c", "at[j]"])
        extras = [
            load_c(view.buffer.dtype, name, index_c(view.strides, ["n", "o", *counters]))
            for view, name in zip(ins[kind.fixed :], names[kind.fixed :], strict=True)
        ]
        lines: list[str] = []
        value = "total"
        if kind.epilogue is not None:
            lines, value = to_statements(kind.epilogue, ["total", *extras])
        weight = load_c(w.buffer.dtype, "w", index_c(w.strides, ["o", "c", "k"]))
        mask = load_c(dtype, "mask", index_c(ins[3].strides, ["n", "g", "k", *counters])) if kind.masked else ""
        return {
            "kind": kind,
            "batch": size_c(x.shape[0]),
            "groups": groups,
            "channels": static(x.shape[1]) // groups,
            "taps": taps,
            "axes": axes,
            "scope": ["n", *counters, f"{work.compute_c} *taps"],
            "tap_scope": ["g", "k", *(f"k{axis}" for axis in range(rank))],
            "conditions": " && ".join(
                f"place{axis} > {literal_c(-1, work)} && place{axis} < {literal_c(static(size), work)}"
                for axis, size in enumerate(x.shape[2:])
            ),
            "corners": corners,
            "out_channels": static(w.shape[0]),
            "in_channels": static(w.shape[1]),
            "per_group": static(w.shape[0]) // kind.group,
            "type": work.compute_c,
            "suffix": "f" if work is f32 else "",
            "number": lambda number: literal_c(number, work),
            "element": load_c(dtype, "x", element),
            "mask": mask,
            "weight": weight,
            "lines": lines,
            "store": store_c(y.buffer.dtype, "y", index_c(y.strides, ["n", "o", *counters]), value),
        }

    def label(self, call: Call) -> str:
        kernel = "x".join(map(str, call.of(DeformConv).kernel))
        return f"deform_conv_{kernel}_{static(call.ins[0].shape[1])}_{static(call.outs[0].shape[1])}"
