"""What gradients may be off by where a loss is large: as much as its last places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper, parser

from mccompile.check.learning import Reference, shaken
from mccompile.check.training_comparison import GRADIENT, TrainingComparison
from mccompile.frontend.judged import judged
from mccompile.passes.learn.optimizers import optimizer
from mccompile.passes.learn.phase_graphs import Learning
from mccompile.toolchain.learning import TrainingRecord


class Flat:
    """Whose gradient is 0 everywhere, as behind a sigmoid that saturates."""

    name = "y"

    def __init__(self, loss: float) -> None:
        self.asked, self.size = Learning("mse:y", "all", optimizer("sgd"), False), loss

    def rounding(self, chance: Any) -> Any:
        return self

    def floats(self, weights: Any) -> Any:
        return weights

    def loss(self, weights: Any, batch: Any) -> float:
        return self.size

    def output(self, weights: Any, batch: Any) -> np.ndarray:
        return np.zeros(1)

    def averages(self, weights: Any, batch: Any) -> dict[str, Any]:
        return {}

    def slope(self, weights: Any, batches: Any, along: Any) -> float:
        return 0.0


def comparison_of(judged: Any, batches: list[dict[str, np.ndarray]], told: TrainingRecord) -> TrainingComparison:
    return TrainingComparison(judged, batches, told, [0])


@pytest.mark.parametrize(
    ("loss", "weight", "off", "verdict"),
    [
        (1.0, 1, 2e-6, "wrong"),
        (10.0, 1, 2e-6, "ok"),
        (10.0, 1, 4e-6, "wrong"),
        (10.0, 4, 4e-6, "ok"),
        (10.0, 0.1, 4e-6, "wrong"),
    ],
)
def test_gradients_hold_the_last_places_of_a_loss_times_weights(
    loss: float, weight: float, off: float, verdict: str
) -> None:
    weights = {"w": np.full(1, weight, np.float32)}
    told = TrainingRecord(
        [weights, weights], [loss], [{"w": np.full(1, off, np.float32)}], [{"y": np.zeros(1, np.float32)}]
    )
    comparison = comparison_of(Flat(loss), [{"x": np.ones(1)}], told)
    found = [finding for finding in comparison.findings(1e-4, 1, 1) if finding.kind == GRADIENT]
    assert {finding.verdict for finding in found} == {verdict}


def test_gradients_of_several_batches_hold_those_of_all_their_losses() -> None:
    flat = Flat(10.0)
    flat.asked = Learning("mse:y", "all", optimizer("sgd"), False, accumulate=2)
    weights, y = {"w": np.ones(1, np.float32)}, {"y": np.zeros(1, np.float32)}
    sums = [{"w": np.full(1, off, np.float32)} for off in (0, 2e-6)]
    told = TrainingRecord([weights] * 3, [10.0, 1.0], sums, [y] * 2)
    comparison = comparison_of(flat, [{"x": np.ones(1)}] * 2, told)
    found = [finding for finding in comparison.findings(1e-4, 1, 1) if finding.kind == GRADIENT]
    assert {finding.verdict for finding in found} == {"ok"}


def test_what_cancels_is_known_as_large_as_rounding_leaves_it() -> None:
    """A bias in front of a normalization has no gradient, but for the rounding of the mean that takes it away."""
    model = parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
        g (float[1, 2, 3, 3] x) => (float[1, 2, 3, 3] y)
        <float[2] a = {-0.02, 2.0}, float[2] b = {-3.0, -2.0}, float[2] c = {2.0, -0.5}, float[2] d = {3.0, 1.0}> {
            h = GroupNormalization <epsilon: float = 0.01, num_groups: int = 2> (x, a, b)
            y = InstanceNormalization (h, c, d)
        }""")
    chance = np.random.default_rng(0)
    batch = {name: chance.standard_normal((1, 2, 3, 3)).astype(np.float32) for name in ("x", "target")}
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    judge, along = Reference(judged(model), Learning("mse:y", "all")), {"b": np.array([1.0, 0.0])}
    assert judge.slope(weights, [batch], along) == pytest.approx(0, abs=1e-8)
    moved = [judge.rounding(chance).slope(shaken(weights, chance), [shaken(batch, chance)], along) for _ in range(3)]
    assert all(1e-7 < abs(slope or 0) < 1e-2 for slope in moved)
