"""int8 conv for cores with Helium: strips that are no larger than two windows
(mccompile/codegen/int8/helium_strips.py)."""

from __future__ import annotations

from mccompile.base.dims import static
from mccompile.codegen.int8.helium_strips import HeliumStrips
from mccompile.codegen.int8.patch_conv import conv_of
from mccompile.kernels.api import Call


class ShortStrips(HeliumStrips):
    slower = 0.28

    def per_strip(self, call: Call) -> int:
        pairs = (static(call.ins[1].shape[3]) // conv_of(call).strides[1] + 1) // 2
        return 2 * max(pairs, 1)
