"""int8 depthwise conv with any window for cores with DSP instructions: two taps of four channels at once
(mccompile/codegen/int8/tap_places.py)."""

from __future__ import annotations

import numpy as np

from mccompile.codegen.int8.tap_places import TapPlaces
from mccompile.kernels.api import Call


class Taps(TapPlaces):
    step = 2
    product, result = 2.8, 14.0
    saturated = "mcc_dsp_saturated_{type}({value}, {shift})"

    def order(self, blocks: np.ndarray) -> np.ndarray:
        """Bytes 0 and 2 of a word are two taps of a channel, bytes 1 and 3 those of the next."""
        return blocks.reshape(*blocks.shape[:3], 2, 2).swapaxes(2, 3)

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_dsp_taps.h"})
