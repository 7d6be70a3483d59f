"""Where time comes first, weights of the DSP kernels are widened ahead of time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from embedded.models import path_of
from mccompile.codegen.int8.dot import pack_pairs, pack_wide
from mccompile.driver import Options, compile


@pytest.mark.parametrize("prefer", ["time", "balanced", "ram", "flash"])
def test_wide_weights_are_for_time(prefer: str, tmp_path: Path) -> None:
    plan = compile(path_of("separable_int8", tmp_path), Options(target="cortex-m4", prefer=prefer)).plan
    kernels = {function.kernel.id for function in plan.functions}
    assert ("conv/i8_nhwc_im2col_wide__dsp" in kernels) == (prefer == "time")


def test_wide_weights_are_the_pairs_that_sxtb16_makes() -> None:
    rows = np.random.default_rng(3).integers(-128, 128, (6, 10)).astype(np.int8)
    words = pack_pairs(rows).reshape(-1, 4)  # elements of two channels in turn
    pairs = pack_wide(rows).view("<i2").reshape(-1, 4)
    np.testing.assert_array_equal(pairs[:, :2], words[:, 0::2])  # sxtb16
    np.testing.assert_array_equal(pairs[:, 2:], words[:, 1::2])  # sxtb16 of the word rotated by 8
