"""Portable kernels over weights and tables that nobody has computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tests.kernels.harness import Trial, run_program

EXTREMES = np.array([0x80000000, 0x7FFFFFFF, 0x80808080, 0x7F7F7F7F, 0xFFFFFFFF, 0], np.uint32)


def run_forged(found: Sequence[Trial], program: Sequence[str]) -> None:
    """A blob with right check sums may hold any bytes. What they give then does not matter, but sums wrap around and
    nothing outside of the operands is touched."""
    chance = np.random.default_rng(1)
    for _ in range(3):
        run_program(program, [trial if trial.overwritten or trial.pieces else forged(trial, chance) for trial in found])


def forged(trial: Trial, chance: np.random.Generator) -> Trial:
    """The trial with such operands, the first one too."""
    blocks = list(trial.blocks)
    for place, type in zip(trial.ins, trial.case.ins, strict=True):
        block = blocks[place.block]
        if type.dtype.is_integer and place.block not in trial.strings:
            words = chance.integers(0, 1 << 32, len(block) // 4 + 1, np.uint32)
            extreme = chance.random(len(words)) < 0.7
            words[extreme] = chance.choice(EXTREMES, int(extreme.sum()))
            if chance.random() < 0.5:  # of one sign: sums that go on growing
                words[:] = chance.choice(EXTREMES)
            blocks[place.block] = words.tobytes()[: len(block)]
    return replace(trial, blocks=tuple(blocks))
