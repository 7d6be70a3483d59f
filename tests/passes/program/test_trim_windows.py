"""Convolutions without the taps that meet nothing but padding: the same results for every way in which windows hang
over, and no weight that is not used."""

from __future__ import annotations

import itertools

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.base.dtypes import DType, f32, i8, i32, u8
from mccompile.base.names import Names
from mccompile.kinds.conv import Conv
from mccompile.passes.program.trim_windows import trimmed
from mccompile.program.ir import CONSTANT, INPUT, Buffer, Call, Program
from mccompile.program.verify import verify
from tests.passes.program.interpreter import outputs


def before_and_after(kind: Conv, x: tuple[int, ...], w: tuple[int, ...], constant: bool = True) -> tuple[Call, Call]:
    """The call and the trimmed one, whose results are the same."""
    chance = np.random.default_rng(sum(x) + sum(w))
    dtype, of_weights = (u8, i8) if kind.accumulator is i32 else (f32, f32)
    given = {"x": drawn(chance, dtype, x), "w": drawn(chance, of_weights, w)}
    source = Buffer("x", dtype, x, INPUT)
    weights = Buffer("w", of_weights, w, INPUT)
    if constant:
        weights = Buffer("w", of_weights, w, CONSTANT, Constant.of(given["w"]))
    zero = [Buffer("zero", dtype, (), CONSTANT, Constant.of(np.array(3, dtype.numpy))).whole()] * kind.x_zero
    result = Buffer("y", kind.accumulator, kind.out_shape(x, w))
    call = Call(kind, (source.whole(), weights.whole(), *zero), (result.whole(),), ("n",))
    after = trimmed(call, kind, Names())
    found = []
    for one in (call, after):
        inputs = [("x", source)] if constant else [("x", source), ("w", weights)]
        program = Program("p", inputs, [("y", result.whole())], [one])
        verify(program, "trimmed")
        found.append(outputs(program, {name: given[name] for name, _ in inputs})["y"])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-5)
    return call, after


def drawn(chance: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    return chance.integers(0, 9, shape).astype(dtype.numpy)


def used_taps(size: int, results: int, kernel: int, stride: int, dilation: int, pad: int) -> list[int]:
    met = [any(0 <= o * stride + t * dilation - pad < size for o in range(results)) for t in range(kernel)]
    return [tap for tap in range(kernel) if met[tap]]


def test_every_way_in_which_windows_hang_over() -> None:
    trimmed_ones = 0
    for size, kernel, stride, dilation, before, after in itertools.product(
        (1, 2, 4), (1, 2, 3, 5), (1, 2, 3), (1, 2, 5), (0, 1, 4, 9), (0, 2, 5)
    ):
        if size + before + after <= (kernel - 1) * dilation:
            continue
        kind = Conv((stride,), (dilation,), (before, after), 1, f32)
        call, short = before_and_after(kind, (1, 2, size), (3, 2, kernel))
        used = used_taps(size, static(call.outs[0].shape[2]), kernel, stride, dilation, before)
        if dilation == 1 and used:
            assert short.ins[1].shape[2] == used[-1] - used[0] + 1
        trimmed_ones += short is not call
    assert trimmed_ones > 100


def test_volumes_of_one_frame() -> None:
    _, short = before_and_after(Conv((1, 1, 1), (1, 1, 1), (1,) * 6, 1, f32), (1, 4, 1, 2, 5), (6, 4, 3, 3, 3))
    assert short.ins[1].shape == (6, 4, 1, 3, 3) and short.of(Conv).pads == (0, 1, 1, 0, 1, 1)
    assert short.ins[1].buffer.shape == short.ins[1].shape


def test_dilation_larger_than_the_picture() -> None:
    _, short = before_and_after(Conv((1, 1), (6, 6), (6, 6, 6, 6), 2, f32), (1, 4, 5, 7), (6, 2, 3, 3))
    assert short.ins[1].shape == (6, 2, 1, 3)


def test_quantized_and_computed_weights() -> None:
    kind = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, i32, x_zero=True)
    _, short = before_and_after(kind, (1, 2, 1, 1), (3, 2, 3, 3))
    assert short.ins[1].shape == (3, 2, 1, 1)
    _, short = before_and_after(Conv((1,), (1,), (2, 2), 1, f32), (2, 2, 2), (3, 2, 5), constant=False)
    assert short.ins[1].shape == (3, 2, 3) and short.ins[1].buffer.shape == (3, 2, 5)


def test_windows_that_meet_inputs_everywhere_stay() -> None:
    call, short = before_and_after(Conv((1, 2), (1, 1), (1, 1, 1, 1), 1, f32), (1, 2, 2, 6), (3, 2, 3, 3))
    assert short is call
