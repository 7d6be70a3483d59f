"""int8 conv for cores with Helium: strips for whole rows of results (mccompile/codegen/int8/helium_strips.py)."""

from __future__ import annotations

from mccompile.base.dims import static
from mccompile.codegen.int8.helium_strips import HeliumStrips
from mccompile.kernels.api import Call


class Strips(HeliumStrips):
    slower = 0.27

    def per_strip(self, call: Call) -> int:
        return static(call.outs[0].shape[3])
