"""How machines add up products of bytes: what one step of a tile of sums takes, and how weights lie for it.
There are three forms:

    fours   a lane adds four products of its channel: [vector][lane][four elements]
    terms   one element of x times a vector of weights, four times: [element][vector][lane]
    pairs   two points by two channels, eight products each: [vector][lane][eight elements]
"""

from __future__ import annotations

import numpy as np

from ...base.records import dataclass
from ...program.ir import Call
from ...targets.api import Target

FORM = 4  # its place among the blocks of a call, behind lanes, points, vectors and shift


@dataclass(frozen=True)
class Form:
    name: str
    depth: int  # elements of a sum in one step
    by_elements: bool = False  # are elements the outermost in a step?

    @property
    def number(self) -> int:
        return FORMS.index(self)

    def steps(self, weights: np.ndarray) -> np.ndarray:
        """Weights [channels of a tile, sum] in the order of the steps: [vector and lane] or [element] comes first."""
        channels, depth = weights.shape[0], self.depth
        return weights.reshape(channels, -1, depth).transpose((1, 2, 0) if self.by_elements else (1, 0, 2))

    def named(self, packing: str) -> str:
        """The name of a packing in this form."""
        return packing if self is FOURS else f"{packing}_{self.name}"


FOURS, TERMS, PAIRS = Form("fours", 4), Form("terms", 4, by_elements=True), Form("pairs", 8)
FORMS = (FOURS, TERMS, PAIRS)


def form_of(target: Target) -> Form:
    """What the target's vectors do."""
    if target.option("dot_terms", 0):
        return TERMS
    return PAIRS if target.option("dot_pairs", 0) else FOURS


def form_in(call: Call) -> Form:
    """What was chosen for the call."""
    return FORMS[call.blocks[FORM]]
