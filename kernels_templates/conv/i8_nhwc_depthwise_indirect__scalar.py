"""int8 depthwise conv with any window for cores without SIMD: a tap of four channels after the
other (mccompile/codegen/int8/tap_places.py)."""

from __future__ import annotations

from mccompile.base.dims import static
from mccompile.codegen.int8.tap_places import AT_ONCE, TapPlaces, channels
from mccompile.codegen.traffic import of_results
from mccompile.kernels.api import Call, Cost, Target

PLACED = 6.0  # for the place of a tap, over what a product takes where an instruction makes two


class Taps(TapPlaces):
    product = 2.2
    saturated = "mcc_saturate_{type}(mcc_shr_i32({value}, {shift}))"
    raised_square = False

    def cost(self, call: Call, target: Target) -> Cost:
        count = channels(call)
        each = (self.product * (count + -count % AT_ONCE) + PLACED) / count
        sums = static(call.macs) * each * target.machine.short_mac
        return Cost(sums + of_results(call, target), code=self.code)

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_scalar_taps.h"})
