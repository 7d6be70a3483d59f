"""argmax_pool in portable C: one window after the other; the elements inside the image are known before its loops
begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mccompile.base.dims import upper
from mccompile.base.dtypes import DType, bf16, f16, f32, f64, i8, i64, u8
from mccompile.base.tensor import Shape, dense_strides
from mccompile.codegen.loops import index_c
from mccompile.codegen.tiles import Range
from mccompile.codegen.windows import any_axes
from mccompile.expr.scalar_c import literal_c, load_c, store_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, supports_types
from mccompile.kinds.argmax_pool import ArgmaxPool


class Windows(Kernel):
    kind = ArgmaxPool

    def cases(self) -> Sequence[Case]:
        plain = ArgmaxPool((3, 3), (2, 2), (1, 1), (1, 1, 1, 1), ())
        three = ArgmaxPool((2, 3, 2), (1, 2, 2), (1, 2, 1), (1,) * 6, (), column_major=True)
        return [
            _case("rows", plain, (2, 3, 9, 16), (5, 8)),
            _case("columns", replace(plain, column_major=True), (2, 3, 9, 16), (5, 8)),
            _case("channels_last", plain, (1, 5, 7, 6), (4, 3), permute={0: (0, 2, 3, 1)}),
            _case("dilated", replace(plain, dilations=(2, 3), strides=(1, 1)), (1, 3, 9, 12), (7, 8)),
            _case("1d", ArgmaxPool((4,), (3,), (1,), (0, 1), ()), (2, 3, 25), (8,)),
            _case("3d", three, (1, 2, 4, 7, 6), (5, 3, 4)),
            *(_case(dtype.name, plain, (1, 3, 9, 16), (5, 8), dtype) for dtype in (f16, bf16, f64, i8, u8)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call)
        return No(reason) if reason else Needs()

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.outs[0].type.count) * 10 * target.machine.element, code=300)

    def parameter_names(self, call: Call) -> tuple[list[str], list[str]]:
        return ["y", "place"], ["x"]

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, x = call.of(ArgmaxPool), call.ins[0]
        y, place = call.outs
        window = (kind.kernel, kind.strides, kind.dilations, kind.pads)
        found = any_axes(y, x, (), [place], *window, join=False)
        rows = []
        for number, axis in enumerate(found):
            at = f"at{number}"
            inside = axis.always_inside
            rows.append(
                {
                    "loop": Range.over(f"p{number}", axis.out).header,
                    "at": f"const mcc_index {at} = {axis.origin(f'p{number}')};",
                    "first": "" if inside else f"const mcc_index first{number} = {axis.first_tap(at)};",
                    "end": "" if inside else f"const mcc_index end{number} = {axis.end_tap(at)};",
                    "taps": Range(
                        f"k{number}", axis.kernel, "0" if inside else f"first{number}", "" if inside else f"end{number}"
                    ),
                    "position": f"const mcc_index i{number} = at{number} + {index_c([axis.dilation], [f'k{number}'])};",
                }
            )
        space = x.shape[2:]
        image = dense_strides(x.shape)[:2]
        count = dense_strides(space[::-1])[::-1] if kind.column_major else dense_strides(space)
        batch = ["n", "c"]
        positions = [*batch, *(f"p{i}" for i in range(len(found)))]
        inside_counters = [*batch, *(f"i{i}" for i in range(len(found)))]
        dtype = x.buffer.dtype
        return {
            "outer": [Range.over("n", x.shape[0]), Range.over("c", x.shape[1])],
            "rows": rows,
            "scope": [
                *batch,
                *(f"{name}{number}" for number in range(len(found)) for name in ("at", "first", "end")),
                f"{dtype.compute_c} &best",
                "int64_t &best_place",
            ],
            "type": dtype.compute_c,
            "is_float": dtype.is_float,
            "lowest": literal_c(dtype.low, dtype),
            "load": load_c(dtype, "x", index_c(x.strides, inside_counters)),
            "index": index_c([*image, *count], inside_counters),
            "store": store_c(dtype, "y", index_c(y.strides, positions), "best"),
            "place_at": index_c(place.strides, positions),
        }


def _case(name: str, kind: ArgmaxPool, x: Shape, space: Shape, dtype: DType = f32, **more: Any) -> Case:
    kind, out, ranges = replace(kind, space=space), (*x[:2], *space), {0: (-9.0, 9.0)}
    made = Case.of_one_type(name, kind, (x,), out, dtype, ranges=ranges, **more)
    return replace(made, outs=(*made.outs, replace(made.outs[0], dtype=i64)))
