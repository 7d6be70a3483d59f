"""roi_align in portable C: region by region, bin by bin; a sample is located once for a block of channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import static, upper
from mccompile.base.dtypes import DType, f16, f32, f64, i64
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c
from mccompile.codegen.moves import position_c
from mccompile.expr.scalar_c import literal_c, load_c, store_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, supports_types
from mccompile.kinds.roi_align import RoiAlign

BLOCK = 8  # channels whose sums are kept at a time


class RoiAlignBins(Kernel):
    kind = RoiAlign

    def cases(self) -> Sequence[Case]:
        def case(
            name: str, dtype: DType, kind: RoiAlign, x: tuple[int, ...] = (2, 3, 6, 7), far: float = 12, **options: Any
        ) -> Case:
            ins = (TensorType(dtype, x), TensorType(dtype, (4, 4)), TensorType(i64, (4,)))
            out = TensorType(dtype, (4, x[1], kind.rows, kind.columns))
            return Case(name, kind, ins, (out,), ranges={1: (-far / 4, far), 2: (-3.0, 3.0)}, **options)

        return [
            case("average", f32, RoiAlign(3, 2, 2, 0.5, True, False)),
            case("adaptive", f32, RoiAlign(2, 3, 0, 1.0, True, False), permute={0: (0, 2, 3, 1)}),
            case("many_channels", f32, RoiAlign(2, 2, 2, 1.0, True, False), (2, 19, 5, 6)),
            case("many_largest", f32, RoiAlign(2, 2, 0, 1.0, True, True), (2, 16, 5, 6), permute={0: (0, 2, 3, 1)}),
            case("far_outside", f32, RoiAlign(3, 2, 0, 1.0, True, False), far=90.0),
            case("adaptive_largest", f32, RoiAlign(2, 2, 0, 1.0, False, True), far=30.0),
            case("largest", f32, RoiAlign(2, 2, 2, 1.0, False, True)),
            case("of_one", f32, RoiAlign(2, 2, 2, 1.0, True, False), (1, 1, 1, 1)),
            case("one_high", f32, RoiAlign(2, 2, 2, 1.0, True, True), (1, 2, 1, 4)),
            case("one_wide", f32, RoiAlign(2, 2, 0, 1.0, True, False), (2, 1, 4, 1)),
            case("f64", f64, RoiAlign(1, 1, 3, 1.0, False, False)),
            case("f16", f16, RoiAlign(2, 2, 1, 0.25, False, False)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        open_sizes = [dim for dim in call.ins[0].shape[2:] if not isinstance(dim, int)]
        reason = f"the size {open_sizes[0]} is known only at run time" if open_sizes else supports_types(call)
        return No(reason) if reason else Needs()

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.outs[0].type.count) * 40 * target.machine.element, code=1200)

    def unpassed(self, call: Call) -> frozenset[str]:
        """Which picture a region lies in says nothing where there is one."""
        return frozenset({"batches"}) if call.ins[0].strides[0] == 0 else frozenset()

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, (x, rois, batches), y = call.kind, call.ins, call.outs[0]
        assert isinstance(kind, RoiAlign)
        dtype = x.buffer.dtype
        work = f64 if dtype is f64 else f32
        strides = {view: view.strides for view in (x, rois, batches, y)}

        def corner(number: int) -> str:
            return load_c(dtype, "rois", index_c(strides[rois], ["r", str(number)]))

        def pixel(row: str, column: str) -> str:
            return load_c(dtype, "x", index_c(strides[x], ["n", "(first + k)", row, column]))

        load = load_c(i64, "batches", index_c(strides[batches], ["r"]))
        picture = position_c("n", load, x.shape[0], in_range=False)
        count, channels = y.shape[:2]
        return {
            "kind": kind,
            "count": count,
            "channels": channels,
            "block": min(BLOCK, upper(channels)),
            "height": static(x.shape[2]),
            "width": static(x.shape[3]),
            "one_high": x.shape[2] == 1 and x.strides[2] == 0,
            "one_wide": x.shape[3] == 1 and x.strides[3] == 0,
            "type": work.compute_c,
            "suffix": "f" if work is f32 else "",
            "name": work.name,
            "number": lambda value: literal_c(value, work),
            "corner": corner,
            "pixel": pixel,
            "batch": () if self.unpassed(call) else picture,
            "store": store_c(dtype, "y", index_c(strides[y], ["r", "(first + k)", "row", "column"]), "total[k]"),
        }
