"""Checking models with states that grow: every run is compared with a reference that is handed all of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper, parser

from mccompile.driver import Options
from mccompile.measure import growing
from mccompile.measure.correctness import check
from mccompile.passes.api import CacheDtype


def counting() -> ModelProto:
    """What a run gives depends on all tokens so far, and on how many the mask says."""
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[more,3] x, float[total,1] mask, float[past,3] k)'
        " => (float[all,3] y, float[all,3] k2, int64[1] n)"
        "{ k2 = Concat<axis=0>(k, x) y = Mul(k2, mask) s = Shape(k) n = Slice(s, nought, one) }"
    )
    made.graph.initializer.extend(
        numpy_helper.from_array(np.array([n]), name) for n, name in ((0, "nought"), (1, "one"))
    )
    return made


@pytest.mark.parametrize("told", [True, False], ids=["of the others", "of its own"])
def test_every_run_goes_on_from_the_one_before(told: bool, tmp_path: Path) -> None:
    """The size of the mask has a name of its own, or one in terms of the others."""
    file = tmp_path / "g.onnx"
    onnx.save(counting(), file)
    dims: dict[str, tuple[int, int]] = {"past": (0, 9), "more": (1, 4)} | ({} if told else {"total": (1, 13)})
    shapes = {"mask": ("past + more", 1)} if told else {}
    verdict = check(file, Options(state={"k2": "k"}, dims=dims, shapes=shapes), runs=5)
    assert verdict.ok, verdict
    sizes = [dict(part.split("=") for part in run.name.split("(")[1][:-1].split(", ")) for run in verdict.runs]
    pasts, news = ([int(each[name]) for each in sizes] for name in ("past", "more"))
    assert pasts[0] == 0 and len(set(news)) > 1 and len(pasts) >= 4
    assert pasts[1:] == [past + added for past, added in zip(pasts, news, strict=True)][:-1]
    assert {output.name for run in verdict.runs for output in run.outputs} == {"y", "k2", "n"}


def test_what_is_left_wrong_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The state itself is compared, as far as it is used."""
    file = tmp_path / "g.onnx"
    onnx.save(counting(), file)
    used = growing.Growing.used
    monkeypatch.setattr(growing.Growing, "used", lambda *args: {n: a + 1 for n, a in used(*args).items()})
    dims = {"past": (0, 3), "more": (1, 1), "total": (1, 4)}
    verdict = check(file, Options(state={"k2": "k"}, dims=dims), runs=2)
    assert [output.name for output in verdict.worst() if not output.ok] == ["k2"]


@pytest.mark.parametrize("kind", ["f16", "int8"])
def test_it_is_told_what_a_cache_in_fewer_bits_changes(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "g.onnx"
    onnx.save(counting(), file)
    options = Options(state={"k2": "k"}, dims={"past": (0, 9), "more": (1, 4)}, shapes={"mask": ("past + more", 1)})
    verdict = check(file, replace(options, cache_dtype=CacheDtype(kind)), runs=5)
    (effect,) = verdict.effects
    assert verdict.ok and (effect.cause, effect.output) == (f"caches in {kind}", "y") and 1e-5 < effect.share < 0.01
