"""Random numbers are drawn anew in every run; with a seed they are refused."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

pytest.importorskip("tflite")

import mccompile
from mccompile.base.errors import UnsupportedModel

from .build import Net

_COMPILER = shutil.which("tcc") or "cc"


def drawn(name: str, seed: int = 0) -> bytes:
    """So many numbers, plus an input."""
    net = Net()
    x, made, y = net.input(()), net.tensor((4096,)), net.tensor((4096,))
    net.op(name, [net.constant(np.array([4096], np.int32))], [made], "RandomOptions", Seed=seed)
    net.op("ADD", [x, made], [y], "AddOptions")
    return net.file([y])


@pytest.mark.parametrize(
    ("name", "mean", "deviation"), [("RANDOM_UNIFORM", 0.5, 12**-0.5), ("RANDOM_STANDARD_NORMAL", 0, 1)]
)
def test_numbers_are_distributed_as_they_should_be(name: str, mean: float, deviation: float) -> None:
    network = mccompile.load(drawn(name), target="generic", cc=_COMPILER)
    (first,), (second,) = (network(np.array(0, np.float32)) for _ in range(2))
    assert (first != second).any()
    for each in (first, second):
        np.testing.assert_allclose([each.mean(), each.std()], [mean, deviation], atol=0.08)


def test_classes_are_drawn_as_often_as_their_logits_say() -> None:
    net = Net()
    x, y = net.input((2, 3)), net.tensor((2, 4000), "INT64")
    net.op("MULTINOMIAL", [x, net.constant(np.array(4000, np.int32))], [y], "RandomOptions")
    shares = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]], np.float32)
    (found,) = mccompile.load(net.file([y]), target="generic", cc=_COMPILER)(np.log(shares))
    counts = np.stack([np.bincount(row, minlength=3) for row in found]) / found.shape[1]
    np.testing.assert_allclose(counts, shares, atol=0.05)


def test_a_seed_is_refused() -> None:
    with pytest.raises(UnsupportedModel, match=r"RANDOM_UNIFORM cannot be compiled(?s:.*)TensorFlow's generator"):
        mccompile.compile(drawn("RANDOM_UNIFORM", seed=7))
