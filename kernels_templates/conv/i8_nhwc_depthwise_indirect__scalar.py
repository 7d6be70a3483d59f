"""int8 depthwise conv with any window for cores without SIMD: a tap of four channels after the
other (mccompile/codegen/int8/tap_places.py)."""

from __future__ import annotations

from mccompile.codegen.int8.tap_places import TapPlaces
from mccompile.kernels.api import Call


class Taps(TapPlaces):
    product = 1.6
    saturated = "mcc_saturate_{type}(mcc_shr_i32({value}, {shift}))"
    raised_square = False

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_scalar_taps.h"})
