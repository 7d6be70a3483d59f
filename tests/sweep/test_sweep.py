"""The fixed part of the sweep: each block in floats and quantized, at a size around the blocks that passes cut; the
whole is `python -m tests.sweep`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import machines, trial
from tests.fuzz.machines import Build

from .__main__ import GOOD, judged, trials
from .blocks import BLOCKS

PLAIN = Build(machines.MACHINES[0], "gcc", ("-std=c99", "-O0", "-Wall", "-Wextra", "-Werror"))
SIZES = {"mlp, rows": 33, "deep mlp, rows": 64, "feed-forward, length": 32, "shared mlp, points": 33}


def test_everyday_blocks_compile_and_are_right(tmp_path: Path) -> None:
    found = []
    for number, name in enumerate(BLOCKS):
        size, prefer = SIZES.get(name, (2, 7, 31)[number % 3]), ("ram", "time")[number // 2 % 2]
        made = list(trials([name], [size], [prefer], [PLAIN]))
        found += made if name in SIZES else made[-1:]  # the others quantized only, where they can be
    for what, each in judged(found, tmp_path):
        assert each.verdict is not None and each.verdict.kind in GOOD, f"{what}: {each.verdict}"


def test_a_wrong_result_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_folder = trial.write_folder

    def broken(folder: Path, files: Any) -> None:
        kernels = files["m0_kernels.c"].replace(b" + ", b" - ")
        write_folder(folder, {**files, "m0_kernels.c": kernels})

    monkeypatch.setattr(trial, "write_folder", broken)
    made = next(trials(["mlp, rows"], [7], ["ram"], [PLAIN]))
    ((_, found),) = judged([made], tmp_path)
    assert found.verdict is not None and found.verdict.kind not in GOOD
