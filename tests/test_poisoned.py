"""Dead memory is filled before every step: nothing changes, and something would if the plan were wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mccompile.driver import Options
from mccompile.emit.package import Package
from mccompile.measure.correctness import build
from mccompile.plan.ir import ARENA
from mccompile.plan.lives import Life
from tests import small_models
from tests.poisoned import dead_ranges, poisoned

TARGET = Options().resolved_target()


def test_ranges_between_what_is_alive_are_dead() -> None:
    lives = [Life("a", 0, 3, 16, 32, ARENA), Life("b", 1, 4, 48, 64, ARENA), Life("c", 2, 5, 0, 16, ARENA)]
    assert dead_ranges(lives, 2, 80) == [(0, 16), (32, 48), (64, 80)]  # step 2 writes c only now
    assert dead_ranges(lives, 3, 80) == [(16, 48), (64, 80)]


@pytest.mark.parametrize("pattern", [0xA5, 0xFF])
def test_dead_memory_does_not_matter_but_live_memory_does(pattern: int) -> None:
    made = small_models.branches()
    inputs = small_models.random_inputs(made)
    package = small_models.compiled(made)
    expected = build(package, TARGET).run(inputs, poison=0)

    def changed(other: Package) -> bool:
        found = build(poisoned(other, pattern), TARGET).run(inputs, poison=0)
        return any(not np.array_equal(found[name], array) for name, array in expected.items())

    assert not changed(package)
    lives = [replace(life, end=life.end - 1) if life.start == 1 else life for life in package.plan.lives]
    assert changed(replace(package, plan=replace(package.plan, lives=tuple(lives))))
