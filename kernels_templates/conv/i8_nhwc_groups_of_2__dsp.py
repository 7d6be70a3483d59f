"""int8 conv with groups of two channels for cores with DSP instructions: a tap of two groups at once
(mccompile/codegen/int8/tap_places.py)."""

from __future__ import annotations

import numpy as np

from mccompile.codegen.int8.dsp_groups import DspGroups


class Pairs(DspGroups):
    inputs = step = 2
    product, result = 2.0, 20.0

    def order(self, blocks: np.ndarray) -> np.ndarray:
        """Bytes 0 and 2 of a word are of one result, bytes 1 and 3 of the next."""
        return blocks.reshape(*blocks.shape[:3], 2, 2).swapaxes(2, 3)
