"""Floats become integers on cores with and without an FPU as the definition says: ties, neighbours, ends, NaN."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from mccompile.driver import Options
from mccompile.targets import api
from mccompile.toolchain.emulate import Emulated
from tests.runtime_c.test_float import near, near_cases
from tests.small_models import model, node, written

TYPES = {"i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16}


@pytest.mark.parametrize("core", ["cortex-m3", "cortex-m4", "cortex-m33"])
def test_quantized_rounded_and_cast(core: str, tmp_path: Path) -> None:
    values = np.unique(np.concatenate([near_cases(np.dtype(dtype))[0] for dtype in TYPES.values()]))
    weights = {f"zero_{name}": dtype(7) for name, dtype in TYPES.items()}
    nodes = [node("QuantizeLinear", f"x one zero_{name}", name) for name in TYPES]
    nodes += [node("Round", "x", "y"), node("Cast", "x", "i32", to=TensorProto.INT32)]
    sizes = values.shape
    made = model("near", nodes, [("x", sizes)], [("y", sizes)], {"one": np.float32(1), **weights}, opset=21)
    for name, dtype in {**TYPES, "i32": np.int32}.items():
        element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        made.graph.output.append(helper.make_tensor_value_info(name, element, values.shape))
    target = api.load(core)
    found = Emulated.build(written(made, tmp_path, Options(target=core)), target).run({"x": values})
    for name, dtype in TYPES.items():
        np.testing.assert_array_equal(found[name], near(values, np.int32(7), np.dtype(dtype)), name)
    np.testing.assert_array_equal(found["y"], np.rint(values))
    fits = np.abs(values) < 2.0**31
    whole = np.where(fits, values, -(2.0**31)).astype(np.int32)
    np.testing.assert_array_equal(found["i32"], whole)
