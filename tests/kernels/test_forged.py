"""Portable kernels over weights and tables that nobody has computed: a blob with right check sums may hold any bytes.
What they give then does not matter, but sums wrap around and nothing outside of the operands is touched."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mccompile.targets import api as targets
from tests.kernels.harness import Trial, compile_program, run_program, trials, write_sources
from tests.kernels.test_matrix import KERNELS, SANITIZED, ids_built_otherwise, shared_cases

pytestmark = pytest.mark.skipif(shutil.which("clang") is None, reason="clang is the quickest with sanitizers")
EXTREMES = np.array([0x80000000, 0x7FFFFFFF, 0x80808080, 0x7F7F7F7F, 0xFFFFFFFF, 0], np.uint32)


OF_INTEGERS = [id for id, kernel in KERNELS.items() if kernel.isa in ("scalar", "dsp", "helium")]
OF_SMALL_CODE = ids_built_otherwise("flash", than="time")


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


@pytest.mark.parametrize(
    ("id", "prefer"),
    [(id, prefer) for id in OF_INTEGERS for prefer in ("time", "flash") if prefer == "time" or id in OF_SMALL_CODE],
)
def test_sums_of_forged_weights_wrap_around(id: str, prefer: str, tmp_path: Path) -> None:
    target = replace(targets.load("generic"), prefer=prefer)
    found = trials(KERNELS[id], target, shared_cases(KERNELS[id], target))  # as test_matrix.py builds it
    write_sources(found, tmp_path, restrict=False)
    program = compile_program(["clang"], SANITIZED, tmp_path)
    chance = np.random.default_rng(1)
    for _ in range(3):
        run_program(program, [trial if trial.overwritten or trial.pieces else forged(trial, chance) for trial in found])
