"""The committed network and pictures are what the example says they are, by an evaluator that is not this project's."""

from pathlib import Path

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"


def test_the_model_still_has_its_batch_normalizations() -> None:
    model = onnx.load(DIGITS / "digits.onnx")
    operators = [node.op_type for node in model.graph.node]
    assert operators.count("BatchNormalization") == operators.count("Conv") == 5


def test_the_files_stay_small() -> None:
    assert (DIGITS / "digits.onnx").stat().st_size < 100_000
    assert (DIGITS / "pictures.npz").stat().st_size < 60_000


def test_stored_predictions_are_those_of_the_stored_model() -> None:
    session = ReferenceEvaluator(onnx.load(DIGITS / "digits.onnx"))
    with np.load(DIGITS / "pictures.npz") as pictures:
        pixels, predictions, scores = pictures["pixels"], pictures["predictions"], pictures["scores"]
    for i in range(0, len(pixels), 20):
        (answer,) = session.run(None, {"image": (pixels[i] / np.float32(16)).astype(np.float32).reshape(1, 1, 8, 8)})
        assert np.argmax(answer) == predictions[i]
        assert abs(np.max(answer) - scores[i]) < 1e-5


def test_the_model_reads_at_least_97_percent_of_the_pictures() -> None:
    with np.load(DIGITS / "pictures.npz") as pictures:
        assert len(pictures["labels"]) >= 100
        assert (pictures["predictions"] == pictures["labels"]).mean() >= 0.97
