"""SavedModels of TensorFlow: from files to C to equal numbers.

`make importers` runs this where the extra `tensorflow` is installed, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import mccompile
from mccompile import cli
from mccompile.base.errors import MccError

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tensorflow = pytest.importorskip("tensorflow", reason="needs the extra tensorflow: `make importers`")
pytest.importorskip("tf2onnx", reason="the extra tensorflow is not installed; `make importers` runs this")


def test_a_saved_model_becomes_c_with_equal_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chance = np.random.default_rng(4)
    weights = tensorflow.Variable(chance.normal(size=(4, 3)).astype(np.float32))

    class Net(tensorflow.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.weights = weights

        @tensorflow.function(input_signature=[tensorflow.TensorSpec([None, 4], tensorflow.float32, "x")])
        def __call__(self, x: object) -> object:
            return {"scores": tensorflow.nn.softmax(x @ self.weights)}

    net, folder = Net(), tmp_path / "net"
    tensorflow.saved_model.save(net, str(folder), signatures=net.__call__.get_concrete_function())
    with pytest.raises(MccError, match="TensorFlow runs operators of it"):
        mccompile.compile(folder)
    x = chance.normal(size=(1, 4)).astype(np.float32)
    got = mccompile.load(folder, trust=True, dims={"batch": 1})(x)["scores"]
    assert np.abs(got - net(x)["scores"].numpy()).max() < 1e-6
    assert cli.run(["check", str(folder), "--dim", "batch=1", "--trust"]) == 0


def test_what_is_no_saved_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(b"not one")
    with pytest.raises(MccError, match="tf2onnx cannot convert"):
        mccompile.compile(tmp_path, trust=True)
