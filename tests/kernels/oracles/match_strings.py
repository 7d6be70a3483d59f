"""match_strings by regular expressions: the automaton of the case is (ab)*."""

from __future__ import annotations

import re

import numpy as np

from mccompile.kinds.match_strings import MatchStrings


def oracle(kind: MatchStrings, x: np.ndarray, *automaton: np.ndarray) -> np.ndarray:
    return np.vectorize(lambda text: re.fullmatch("(ab)*", text) is not None, otypes=[bool])(x)
