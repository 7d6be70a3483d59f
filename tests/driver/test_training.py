"""Networks that cannot learn are refused with what would have to be otherwise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from mccompile.base.errors import WrongUse
from mccompile.driver import Options
from mccompile.driver.training import train
from mccompile.passes.learn.phase_graphs import Learning

ROWS = "(float[b,4] x) => (float[b,2] y) { y = MatMul(x, w) }"
CHOSEN = "(float[b,4] x) => (float[n,2] y) { p = NonZero(x) q = Slice(p, zero, one) z = Cast<to = 1>(q)" \
         "  t = Transpose(z) y = Mul(t, v) }"  # fmt: skip


@pytest.mark.parametrize(
    ("text", "dims", "told"),
    [
        (ROWS, {"b": (1, 5)}, r"one size\n  fix    fix what is free: --dim b=5$"),
        (CHOSEN, {"b": (2, 2)}, r"'p' is i64\[2,n_p\], which only a run knows"),
    ],
)
def test_sizes_that_no_batch_has(text: str, dims: dict[str, tuple[int, int]], told: str, tmp_path: Path) -> None:
    weights = {"w": np.ones((4, 2), np.float32), "v": np.ones(2, np.float32), "zero": [0], "one": [1]}
    made = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {text}')
    made.graph.initializer.extend(numpy_helper.from_array(np.asarray(a), name) for name, a in weights.items())
    onnx.save(made, tmp_path / "net.onnx")
    with pytest.raises(WrongUse, match=told):
        train(tmp_path / "net.onnx", Learning("mse:y"), Options(dims=dims))


def test_a_size_that_was_fixed_as_told(tmp_path: Path) -> None:
    made = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {ROWS}')
    made.graph.initializer.append(numpy_helper.from_array(np.ones((4, 2), np.float32), "w"))
    onnx.save(made, tmp_path / "net.onnx")
    train(tmp_path / "net.onnx", Learning("mse:y"), Options(dims={"b": (5, 5)}))
