"""int8 conv for cores with Helium: line buffers under a few results, no larger than two windows
(mccompile/codegen/int8/helium_line_buffer.py)."""

from __future__ import annotations

from mccompile.base.dims import static
from mccompile.codegen.int8.helium_line_buffer import HeliumLineBuffer
from mccompile.codegen.int8.patch_conv import conv_of
from mccompile.kernels.api import Call


class TiledLineBuffer(HeliumLineBuffer):
    def per_buffer(self, call: Call) -> int:
        pairs = (static(call.ins[1].shape[3]) // conv_of(call).strides[1] + 1) // 2
        return 2 * max(pairs, 1)
