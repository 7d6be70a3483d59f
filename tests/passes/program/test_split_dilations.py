"""Dilated convolutions as ones without dilation: the same results for any pads, and Winograd's method for bytes."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mccompile.base.constant import Constant
from mccompile.base.dtypes import f32, i8, i32
from mccompile.base.names import Names
from mccompile.codegen.cases import RELU_OF_SUM
from mccompile.driver import Options, compile
from mccompile.kinds.conv import Conv
from mccompile.passes.program.split_dilations import split
from mccompile.program.ir import CONSTANT, INPUT, Buffer, Call, Program, View
from mccompile.program.verify import verify
from tests.passes.program.interpreter import outputs
from tests.small_models import floats, model, node, save

PLAIN = Conv((1, 1), (2, 2), (2, 2, 2, 2), 1, f32)


@pytest.mark.parametrize(
    ("kind", "x", "w"),
    [
        (PLAIN, (2, 3, 9, 8), (4, 3, 3, 3)),
        (replace(PLAIN, pads=(0, 1, 3, 2)), (1, 2, 7, 6), (3, 2, 3, 2)),
        (replace(PLAIN, dilations=(1, 5), pads=(1, 3, 0, 10)), (1, 2, 4, 11), (2, 2, 2, 3)),
        (replace(PLAIN, dilations=(4, 3), group=2, epilogue=RELU_OF_SUM), (1, 4, 10, 9), (6, 2, 2, 2)),
        (Conv((1,), (3,), (6, 6), 1, f32), (1, 2, 13), (3, 2, 3)),
        (replace(PLAIN, accumulator=i32), (1, 2, 8, 8), (3, 2, 3, 3)),
    ],
)
def test_phases_give_what_the_call_gives(kind: Conv, x: tuple[int, ...], w: tuple[int, ...]) -> None:
    dtype = i8 if kind.accumulator is i32 else f32
    source = Buffer("x", dtype, x, INPUT)
    numbers = Constant.of((floats(1, *w) * 9).astype(dtype.numpy))
    weights = Buffer("w", dtype, w, CONSTANT, numbers)
    made = Buffer("y", kind.accumulator, kind.out_shape(x, w))
    other = Buffer("other", f32, made.shape, INPUT)
    ins: list[View] = [source.whole(), weights.whole(), *([other.whole()] if kind.epilogue else [])]
    call = Call(kind, tuple(ins), (made.whole(),), ("n",))
    values = {"x": (floats(2, *x) * 9).astype(dtype.numpy), "other": floats(3, *made.shape)}
    inputs = [("x", source), *([("other", other)] if kind.epilogue else [])]
    found = []
    for body in ([call], list(split(call, kind, Names()))):
        program = Program("p", inputs, [("y", made.whole())], [*body])
        verify(program, "split")
        found.append(outputs(program, {name: values[name] for name, _ in inputs})["y"])
    convolutions = [each.kind for each in body if isinstance(each.kind, Conv)]
    assert len(convolutions) == math.prod(kind.dilations) and all({*each.dilations} == {1} for each in convolutions)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-5)


def test_bytes_take_winograds_method(tmp_path: Path) -> None:
    weights = {"s": np.array(0.02, np.float32), "z": np.array(3, np.int8), "n": np.array(0, np.int8)}
    weights["w"] = np.random.default_rng(0).integers(-90, 90, (64, 64, 3, 3)).astype(np.int8)
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("DequantizeLinear", "q s z", "d"),
        node("DequantizeLinear", "w s n", "v"),
        node("Conv", "d v", "c", dilations=[2, 2], pads=[2, 2, 2, 2]),
        node("QuantizeLinear", "c s z", "r"),
        node("DequantizeLinear", "r s z", "y"),
    ]
    path = save(model("dilated", nodes, [("x", (1, 64, 56, 56))], [("y", (1, 64, 56, 56))], weights), tmp_path)
    plan = compile(path, Options(target="x86-64-v3", prefer="time")).plan
    assert "conv/i8_nhwc_winograd__avx2" in {step.function.kernel.id for step in plan.steps()}
