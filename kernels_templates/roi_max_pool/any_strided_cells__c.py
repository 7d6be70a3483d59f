"""roi_max_pool in portable C: corners are rounded to whole elements, cells overlap by what does not divide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import static, upper
from mccompile.base.dtypes import bf16, f16, f32, f64
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c
from mccompile.expr.dims_c import size_c
from mccompile.expr.scalar_c import literal_c, load_c, store_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, supports_types
from mccompile.kinds.roi_max_pool import RoiMaxPool


class Cells(Kernel):
    kind = RoiMaxPool

    def cases(self) -> Sequence[Case]:
        cases = []
        for name, cells, scale, high, dtype in (
            ("plain", (2, 3), 1.0, 6.0, f32),
            ("scaled", (3, 2), 0.25, 50.0, f32),
            ("one_cell", (1, 1), 1.0, 6.0, f64),
            ("f16", (2, 2), 0.5, 9.0, f16),
            ("bf16", (2, 2), 0.5, 9.0, bf16),
        ):
            ins = (TensorType(dtype, (3, 4, 8, 9)), TensorType(dtype, (7, 5)))
            outs = (TensorType(dtype, (7, 4, *cells)),)
            cases.append(Case(name, RoiMaxPool(cells, scale), ins, outs, ranges={0: (-9.0, 9.0), 1: (-0.99, high)}))
        return cases

    def match(self, call: Call, target: Target) -> No | Needs:
        """Images, channels and regions may be known at run time."""
        unknown = [size for size in call.ins[0].shape[2:] if not isinstance(size, int)]
        reason = f"the size {unknown[0]} is known only at run time" if unknown else supports_types(call)
        return No(reason) if reason else Needs()

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.outs[0].type.count) * 10 * target.machine.element, code=500)

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"math.h"})

    def context(self, call: Call) -> Mapping[str, Any]:
        x, regions = call.ins
        y = call.outs[0]
        dtype = x.buffer.dtype
        row, column = regions.strides
        real, images = dtype.compute_c, x.shape[0]
        return {
            "regions": size_c(regions.shape[0]),
            "images": images if isinstance(images, int) else f"({real}){size_c(images)}",
            "channels": size_c(x.shape[1]),
            "height": static(x.shape[2]),
            "width": static(x.shape[3]),
            "rows": call.of(RoiMaxPool).cells[0],
            "columns": call.of(RoiMaxPool).cells[1],
            "image": load_c(dtype, "regions", index_c([row], ["r"])),
            "corners": [load_c(dtype, "regions", index_c([row], ["r"], column * number)) for number in range(1, 5)],
            "scale": literal_c(call.of(RoiMaxPool).scale, dtype),
            "lowest": literal_c(dtype.low, dtype),
            "type": real,
            "number": "f32" if real == "float" else "f64",
            "suffix": "f" if real == "float" else "",
            "load": load_c(dtype, "x", index_c(x.strides, ["image", "c", "i", "j"])),
            "store": store_c(dtype, "y", index_c(y.strides, ["r", "c", "y_cell", "x_cell"]), "best"),
        }
