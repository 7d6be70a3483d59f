"""mccompile diff: what two folders make of the same inputs, and whose weights moved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mccompile.base.errors import WrongUse
from mccompile.driver import Options, compile
from mccompile.measure.difference import Difference, difference
from mccompile.measure.results import Moved, Results
from tests import small_models
from tests.small_models import written

WEIGHTS = np.arange(24, dtype=np.float32).reshape(8, 3) / 10


def dense(folder: Path, weights: np.ndarray = WEIGHTS, name: str = "x", **changes: Any) -> Path:
    nodes = [small_models.node("MatMul", f"{name} w", "h"), small_models.node("MatMul", "h v", "y")]
    constants = {"w": weights, "v": np.eye(3, dtype=np.float32)[::-1].copy()}
    made = small_models.model("one", nodes, [(name, (1, 8))], [("y", (1, 3))], constants)
    return written(made, folder, Options(**changes))


def compared(*sides: Path, **how: Any) -> tuple[Difference, Results]:
    found = difference(*sides, **how)
    assert isinstance(found.results, Results), found.results
    return found, found.results


def test_the_same_code_makes_equal_bits(tmp_path: Path) -> None:
    found, made = compared(dense(tmp_path / "a"), dense(tmp_path / "b"))
    assert made.outputs[0].show() == "equal bits" and made.outputs[0].of > 0 and made.runs == 3
    assert not found.has_changes and not found.weights and not found.worst
    assert "Nothing got worse." in found.markdown()


def test_free_sizes_are_compared_at_both_ends(tmp_path: Path) -> None:
    nodes = [small_models.node("MatMul", "x w", "h"), small_models.node("Relu", "h", "y")]
    made = small_models.model("free", nodes, [("x", ("n", 8))], [("y", ("n", 3))], {"w": WEIGHTS})
    (tmp_path / "free.onnx").write_bytes(made.SerializeToString())

    def side(name: str, most: int, **more: Any) -> Path:
        compile(tmp_path / "free.onnx", Options(dims={"n": (1, most)}, **more)).write(tmp_path / name)
        return tmp_path / name

    sides = [side(prefer, 5, prefer=prefer) for prefer in ("ram", "time")]
    assert compared(*sides)[1].outputs[0].show() == "equal bits"
    shorter = difference(sides[0], side("less", 4))
    assert shorter.results == "sizes are n=1..5 before, n=1..4 after"


def test_weights_that_are_packed_otherwise_have_not_moved(tmp_path: Path) -> None:
    mlp, targets = small_models.mlp(), ("generic", "cortex-m4")
    sides = [written(mlp, tmp_path / target, Options(target=target)) for target in targets]
    assert not difference(*sides).weights


def test_moved_outputs_weights_and_answers_are_told(tmp_path: Path) -> None:
    other = WEIGHTS.copy()
    other[:, 2] = 0
    before, after = dense(tmp_path / "a", without=frozenset({"fold_constants"})), dense(tmp_path / "b", other)
    x = np.eye(8, dtype=np.float32)[:, None]
    np.savez(tmp_path / "s.npz", x=x, labels=np.zeros(8, np.int64))
    found, made = compared(before, after, data=tmp_path / "s.npz")
    (moved,) = made.outputs
    assert moved.largest == pytest.approx(2.3) and moved.of == pytest.approx(2.3) and made.runs == 8
    assert made.right == (1.0, 0.0) and made.answers == 1.0
    assert found.has_changes and [name.startswith("h") for name in found.weights] == [True]
    said = found.markdown()
    assert said.index("1. right answers: 100.00% → 0.00%") < said.index("2. output y moves") < said.index("| before |")
    assert found.as_dict()["results"]["accuracy_percent"] == {"before": 100.0, "after": 0.0}
    assert "weights  moved: h" in found.show() and found.as_dict()["moved_weights"] == list(found.weights)


def test_what_cannot_be_compared_is_said(tmp_path: Path) -> None:
    found = difference(dense(tmp_path / "a"), dense(tmp_path / "b", name="z"))
    assert found.results == "inputs are x f32[1,8] before, z f32[1,8] after"
    assert f"results  not compared: {found.results}" in found.show()
    assert found.as_dict()["no_results"] == found.results
    with pytest.raises(WrongUse, match="only folders have code"):
        difference(tmp_path / "a" / "one" / "report.json", tmp_path / "b" / "one", tmp_path / "s.npz")


def test_code_for_other_cores_runs_here(tmp_path: Path) -> None:
    _, made = compared(dense(tmp_path / "a", target="cortex-m4"), dense(tmp_path / "b", target="cortex-m55"))
    assert made.outputs[0].share < 1e-5


def test_three_worst_changes_stand_first() -> None:
    outputs = tuple(Moved(f"y{n}", n / 10, 1.0, 20.0) for n in range(5))
    found = Difference("a", "b", (), (), Results(3, "random", outputs))
    assert [text.split()[1] for text in found.worst] == ["y4", "y3", "y2"]
