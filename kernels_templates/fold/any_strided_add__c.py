"""fold in portable C: the image is cleared, then every block element added to the row of places it has in the image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import static, upper
from mccompile.base.dtypes import DType, f16, f32, i8
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c, nest
from mccompile.expr.dims_c import size_c
from mccompile.expr.ir import apply, operand
from mccompile.expr.scalar_c import literal_c, load_c, store_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, supports_types
from mccompile.kinds.fold import Fold


class FoldAdd(Kernel):
    kind = Fold

    def cases(self) -> Sequence[Case]:
        def case(name: str, dtype: DType, x: tuple[int, ...], y: tuple[int, ...], kind: Fold, **options: Any) -> Case:
            return Case(name, kind, (TensorType(dtype, x),), (TensorType(dtype, y),), **options)

        twice = (1, 1, 1), (1, 1, 1)
        return [
            case("plain", f32, (2, 3, 2, 2, 3, 4), (2, 3, 4, 5), Fold((4, 5), (1, 1), (1, 1), (0, 0))),
            case("strided", f32, (1, 2, 3, 2, 3, 3), (1, 2, 5, 6), Fold((5, 6), (2, 3), (1, 2), (1, 2))),
            case("one_axis", f16, (2, 1, 3, 4), (2, 1, 5), Fold((5,), (1,), (2,), (2,))),
            case("three_axes", i8, (1, 1, 2, 1, 2, 2, 3, 2), (1, 1, 3, 3, 3), Fold((3, 3, 3), *twice, (0, 0, 0))),
            case("of_one", f32, (1, 1, 2, 1, 2, 3), (1, 1, 1, 3), Fold((1, 3), (1, 1), (1, 1), (1, 0))),
            case("turned", f32, (1, 2, 2, 3), (1, 2, 4), Fold((4,), (1,), (1,), (0,)), permute={0: (3, 2, 1, 0)}),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        """Samples and channels may be known at run time."""
        sizes = [*call.ins[0].shape[2:], *call.outs[0].shape[2:]]
        unknown = [f"the size {size} is known only at run time" for size in sizes if not isinstance(size, int)]
        reason = unknown[0] if unknown else supports_types(call)
        return No(reason) if reason else Needs()

    def cost(self, call: Call, target: Target) -> Cost:
        machine, terms, sums = target.machine, upper(call.ins[0].type.count), upper(call.outs[0].type.count)
        return Cost(terms * machine.element + sums * machine.vector_element, code=300)

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, x, y = call.kind, call.ins[0], call.outs[0]
        assert isinstance(kind, Fold)
        axes = len(kind.space)
        dtype = y.buffer.dtype
        shape = [*x.shape[:2], *(static(size) for size in x.shape[2:])]
        outer = [("b", size_c(shape[0])), ("c", size_c(shape[1]))]
        space = [
            {
                "n": n,
                "block": shape[2 + n],
                "count": shape[2 + axes + n],
                "size": static(y.shape[2 + n]),
                "stride": kind.strides[n],
                "dilation": kind.dilations[n],
                "before": kind.before[n],
                "step": y.strides[2 + n] != 0,
            }
            for n in range(axes)
        ]
        blocks, counts = [f"k{n}" for n in range(axes)], [f"l{n}" for n in range(axes)]
        at_x = index_c(x.strides, ["b", "c", *blocks, *counts])
        at_y = index_c(y.strides, ["b", "c", *(f"i{n}" for n in range(axes))])
        total = apply("add", operand(0, dtype), operand(1, dtype))
        lines, value = to_statements(total, [load_c(dtype, "y", at_y), load_c(dtype, "x", at_x)])
        clear = nest(y.shape, [y], prefix="z")
        return {
            "clear": clear.loops,
            "store_zero": store_c(dtype, "y", clear.index(0), literal_c(0, dtype)),
            "outer": [*outer, *((f"k{n}", shape[2 + n]) for n in range(axes))],
            "space": space,
            "lines": lines,
            "store": store_c(dtype, "y", at_y, value),
        }
