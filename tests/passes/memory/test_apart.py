"""Results that would make a memory larger where they lie over operands get a place of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mccompile.driver import Options, compile
from mccompile.measure.building import build
from mccompile.targets import api as targets
from mccompile.targets.api import Pool
from tests.small_models import save
from tests.small_quantized import convolutions

MEMORIES = (Pool("near", 1200, 0), Pool("away", None, 1, copied=True))
WIDE, SMALL = 24 * 24 * 8, 12 * 12 * 8  # bytes of tensors that a run of layers begins or ends with


def test_a_result_that_grows_again_lies_apart_from_what_lay_over_the_input(tmp_path: Path) -> None:
    layers = [(8, 3, 2), (0, 3, 1), (8, 1, 1), (0, 3, 2), (32, 3, 1), (0, 3, 2)]
    model, outputs = save(convolutions(48, layers), tmp_path), list[np.ndarray]()
    x = np.random.default_rng(1).integers(-128, 128, (1, 1, 48, 48)).astype(np.int8)
    for memories in (MEMORIES, ()):
        package = compile(model, Options(mem=memories))
        built = build(package, targets.load("generic"))
        outputs += built.run({"x": x}).values()
        if memories:
            assert package.plan.arenas[1].bytes == WIDE + SMALL  # WIDE is copied in while SMALL is copied out
    assert np.array_equal(*outputs)
