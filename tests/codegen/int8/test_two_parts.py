"""Cores whose products have no upper half requantize in 32 bits, with the same results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mccompile.base.dtypes import DType, i8, u8
from mccompile.codegen.int8.dot import Rescaling
from mccompile.codegen.int8.two_parts import in_two_parts
from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.targets import api as targets
from mccompile.targets.api import Prefer
from tests.kernels.test_matrix import KERNELS, wrong_results
from tests.signal_networks import Signal
from tests.thorough import some

SCALAR = (
    "conv/i8_nhwc_im2col__scalar",
    "conv/i8_nhwc_im2col_wide__scalar",
    "conv/i8_nhwc_im2col_pairs__scalar",
    "conv/i8_nhwc_depthwise_3x3__scalar",
    "gemm/i8_rows_patch__scalar",
)


def drawn(channels: int, taken: int, shift: int, dtype: DType) -> tuple[np.ndarray, np.ndarray, Rescaling]:
    chance = np.random.default_rng(taken + shift)
    rows = np.clip(chance.normal(0, 30, (channels, taken)), -127, 127).astype(np.int8)
    factors = 255 / (np.abs(rows.astype(np.int64)).sum(1) * 255) * chance.uniform(0.5, 4, channels)
    multipliers = (factors * 2.0 ** (32 + shift)).astype(np.int64)
    values = np.stack([chance.integers(-2000, 2000, channels), multipliers, np.full(channels, -100 << shift)])
    return values, rows, Rescaling((2, 3, 4), shift, dtype, None, False, False)


@pytest.mark.parametrize(("taken", "shift", "dtype"), [(9, 3, i8), (40, 2, u8), (64, 3, i8), (64, 5, u8)])
def test_every_sum_gives_the_same_result(taken: int, shift: int, dtype: DType) -> None:
    values, rows, found = drawn(12, taken, shift, dtype)
    table = in_two_parts(values, rows, (0, 255), found, lanes=1)
    assert np.count_nonzero(table[1] < 0) > 6
    wide = rows.astype(np.int64) * 255
    for channel in np.flatnonzero(table[1] < 0):
        sums = np.arange(np.minimum(wide[channel], 0).sum(), np.maximum(wide[channel], 0).sum() + 1)
        addend, parts, by = table[:, channel].tolist()
        low = (parts & 65535 ^ 32768) - 32768
        total = sums * -(parts >> 16) + (sums * low >> 12) + addend
        assert max(np.abs(sums * low).max(), np.abs(total).max()) < 1 << 31
        bias, multiplier, before = values[:, channel].tolist()
        exact = (before + ((sums + bias) * multiplier >> 32)) >> shift
        assert np.array_equal(np.clip(total >> by, dtype.low, dtype.high), np.clip(exact, dtype.low, dtype.high))


def test_only_whole_groups_have_two_parts() -> None:
    values, rows, found = drawn(11, 9, 3, i8)
    values[1, 5] = 0
    table = in_two_parts(values, rows, (0, 255), found, lanes=4)
    assert np.array_equal(table[:, 4:], values[:, 4:]) and np.all(table[1, :4] < 0)


def test_sums_of_more_bits_keep_the_upper_half() -> None:
    values, rows, found = drawn(4, 9000, 3, i8)
    assert np.array_equal(in_two_parts(values, rows, (0, 255), found, lanes=4), values)


@some(2, "id", SCALAR)
def test_portable_form_computes_what_the_kernel_means(id: str, tmp_path: Path) -> None:
    generic, core = targets.load("generic"), "rv32imc" if "_pairs_" in id else "cortex-m0"
    target = replace(generic, machine=targets.load(core).machine, prefer=Prefer.TIME)
    assert not wrong_results(KERNELS[id], target, tmp_path)


@pytest.mark.parametrize(
    ("target", "prefer", "saved"),
    [("cortex-m0", "time", True), ("cortex-m23", "balanced", True), ("cortex-m0", "flash", False)]
    + [(target, "time", False) for target in ("cortex-m3", "rv32imc")],
)
def test_only_cores_without_upper_halves_have_it(target: str, prefer: str, saved: bool) -> None:
    net = Signal(16, 60, picture=True, quantized=True)
    net.stored()
    net.conv(16, 1)
    net.conv(16, 3, group=16)
    net.conv(8, 1)
    package = compile_graph(load_proto(net.model("n"), Path()), Options(target=target, prefer=prefer), "n")
    text = "".join(str(source) for name, source in package.files.items() if name.endswith("kernels.c"))
    assert ("mcc_scalar_parts2x4" in text or "mcc_scalar_wide_" in text) is saved


def test_words_of_two_weights_cost_flash_where_time_is_preferred() -> None:
    net = Signal(16, 60, picture=True, quantized=True)
    net.stored()
    net.conv(16, 1)
    net.conv(8, 1)
    wide = "conv/i8_nhwc_im2col_wide__scalar"
    for target, prefer, expected in (
        ("cortex-m0", "time", True),
        ("cortex-m0", "balanced", False),
        ("cortex-m3", "time", False),
        ("rv32imc", "time", False),
    ):
        package = compile_graph(load_proto(net.model("n"), Path()), Options(target=target, prefer=prefer), "n")
        assert (wide in {function.kernel.id for function in package.plan.functions}) is expected, (target, prefer)


@pytest.mark.parametrize(("target", "expected"), [("rv32imc", True), ("cortex-m3", False), ("cortex-m0", False)])
def test_steps_are_taken_in_pairs_where_adding_is_an_instruction_of_its_own(target: str, expected: bool) -> None:
    net = Signal(16, 60, picture=False, quantized=True)
    net.stored()
    net.conv(16, 1)
    net.conv(16, 3)
    net.conv(8, 1)
    pairs, read = "conv/i8_nhwc_im2col_pairs__scalar", load_proto(net.model("n"), Path())
    package = compile_graph(read, Options(target=target, prefer="time"), "n")
    assert (pairs in {function.kernel.id for function in package.plan.functions}) is expected
