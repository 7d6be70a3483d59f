"""decode_image in portable C: the function of the runtime for one size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import upper
from mccompile.base.dtypes import bool_, u8
from mccompile.base.tensor import TensorType
from mccompile.expr.dims_c import dim_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target
from mccompile.kinds.decode_image import PIXELS, DecodeImage


class DecodeImageWalk(Kernel):
    kind = DecodeImage

    def cases(self) -> Sequence[Case]:
        rng = np.random.default_rng(0)
        raw = b"P6\n# a comment\n3 2\n255\n" + bytes(rng.integers(0, 256, 18).tolist())

        def case(name: str, file: bytes, pixels: str = "RGB") -> Case:
            contents = np.frombuffer(file, np.uint8)
            image = TensorType(u8, (2, 3, 1 if pixels == "Grayscale" else 3))
            ins = (TensorType(u8, contents.shape),)
            return Case(name, DecodeImage(pixels), ins, (image, TensorType(bool_, ())), values={0: contents})

        return [case("rgb", raw), case("bgr", raw, "BGR"), case("grey", raw, "Grayscale")]

    def match(self, call: Call, target: Target) -> No | Needs:
        return Needs(dense=frozenset({0}), dense_outs=frozenset({0}), symbols=True)

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.outs[0].type.count) * 5 * target.machine.element, code=2500)

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_image.h"})

    def context(self, call: Call) -> Mapping[str, Any]:
        height, width, _ = call.outs[0].shape
        return {
            "size": dim_c(call.ins[0].shape[0]),
            "height": dim_c(height),
            "width": dim_c(width),
            "pixels": PIXELS.index(call.of(DecodeImage).pixels),
        }
