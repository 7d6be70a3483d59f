"""Measurements of kernels at random: a compiler that believes them takes any kernel that says yes to a call."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mccompile.driver import Options
from mccompile.emit.package import Package
from mccompile.measure.tuning.candidates import Candidates

DRAWN = ".costs"


def written(folder: Path, seed: int, package: Package, options: Options) -> Path:
    """A file with one for each kernel that the calls of a package may get."""
    path, chance = folder.with_suffix(".sqlite"), np.random.default_rng(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    Candidates(options, "cc 1").write(path, package, lambda model: model * float(chance.uniform(0.01, 100)))
    return path
