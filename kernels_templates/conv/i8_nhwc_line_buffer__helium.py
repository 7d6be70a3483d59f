"""int8 conv for cores with Helium: a line buffer under each row of results
(mccompile/codegen/int8/helium_line_buffer.py)."""

from __future__ import annotations

from mccompile.base.dims import static
from mccompile.codegen.int8.helium_line_buffer import HeliumLineBuffer
from mccompile.kernels.api import Call


class LineBuffer(HeliumLineBuffer):
    def per_buffer(self, call: Call) -> int:
        return static(call.outs[0].shape[3])
