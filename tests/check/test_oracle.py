"""The reference, with onnxruntime and without."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mccompile.check import oracle
from mccompile.check.oracle import Oracle
from tests import small_models
from tests.small_models import random_inputs, reference, save


@pytest.mark.parametrize("runtime", [True, False], ids=["onnxruntime", "evaluator"])
def test_outputs_and_inner_tensors(runtime: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if runtime:
        pytest.importorskip("onnxruntime")
    else:
        monkeypatch.setattr(oracle, "find_spec", lambda name: None)
    made = small_models.conv()
    found = Oracle(save(made, tmp_path), ["sum", "c1"])
    inputs = random_inputs(made)
    results = found.run(inputs)
    assert found.name == ("onnxruntime" if runtime else "onnx reference evaluator")
    assert list(results) == ["y", "sum", "c1"]
    np.testing.assert_allclose(results["y"], reference(made, inputs)["y"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(results["y"], np.maximum(results["sum"], 0))
