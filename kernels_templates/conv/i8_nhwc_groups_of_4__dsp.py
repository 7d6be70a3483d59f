"""int8 conv with groups of four channels for cores with DSP instructions: a tap of a group after the other
(mccompile/codegen/int8/tap_places.py)."""

from __future__ import annotations

import numpy as np

from mccompile.codegen.int8.dsp_groups import DspGroups


class Fours(DspGroups):
    inputs = step = 4
    product, result = 1.4, 20.0

    def order(self, blocks: np.ndarray) -> np.ndarray:
        """A word has the weights of one result."""
        return blocks.swapaxes(2, 3)
