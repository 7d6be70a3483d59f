"""TopK of one element becomes reductions where these take less time; results stay what they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import mccompile
from mccompile.kinds.top_k import TopK
from tests.kernels.oracles.top_k import oracle
from tests.small_models import save

KINDS = {"float": np.float32, "double": np.float64, "int64": np.int64, "uint8": np.uint8}


def _text(dtype: str, largest: int, outputs: str) -> str:
    given = {"v": f"{dtype}[40, 1] v", "p": "int64[40, 1] p"}
    return f"""<ir_version: 9, opset_import: ["" : 18]>
        g ({dtype}[40, 77] x) => ({", ".join(given[name] for name in outputs)})
        <int64[1] k = {{1}}> {{ v, p = TopK <axis = 1, largest = {largest}> (x, k) }}"""


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("dtype", KINDS)
def test_results_stay_what_they_are(dtype: str, largest: int, tmp_path: Path) -> None:
    x = np.random.default_rng(3).integers(0, 9, (40, 77)).astype(KINDS[dtype])
    if x.dtype.kind == "f":
        x[1, 5:] = x[2, 76] = x[3] = np.nan
        x[4, ::2], x[5, 1::2] = np.inf, -np.inf
    net = mccompile.load(save(onnx.parser.parse_model(_text(dtype, largest, "vp")), tmp_path), target="native")
    found = net(x)
    for name, want in zip("vp", oracle(TopK(1, 1, bool(largest)), x), strict=True):
        np.testing.assert_array_equal(found[name], want)


@pytest.mark.parametrize(
    ("dtype", "largest", "outputs", "kinds"),
    [
        ("float", 1, "v", ["reduce"]),
        ("float", 1, "p", ["arg_reduce"]),
        ("uint8", 0, "vp", ["reduce", "arg_reduce"]),
        ("float", 0, "vp", ["top_k"]),  # the smallest is never NaN
    ],
)
def test_only_what_is_read_is_computed(
    dtype: str, largest: int, outputs: str, kinds: list[str], tmp_path: Path
) -> None:
    path = save(onnx.parser.parse_model(_text(dtype, largest, outputs)), tmp_path)
    steps = mccompile.compile(path, mccompile.Options(target="x86-64-v3")).report["steps"]
    assert [step["kernel"].partition("/")[0] for step in steps] == kinds
