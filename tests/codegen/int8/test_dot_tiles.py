"""Tiles of dot products: their size, how weights and tables are packed, and which machine gets which."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dtypes import i8, i32, u8
from mccompile.codegen.int8.dot_tiles import best_dot_tile, halves, shifted, zipped
from mccompile.codegen.int8.patch_conv import rescaled_case
from mccompile.kernels.api import Needs, No
from mccompile.kernels.registry import Registry
from mccompile.kinds.conv import Conv
from mccompile.targets import api as targets
from tests.kernels.harness import call_of

KERNELS = Registry.load()
V3, V4 = targets.load("x86-64-v3"), targets.load("x86-64-v4")
CONV, WINOGRAD = KERNELS["conv/i8_nhwc_tile__dot"], KERNELS["conv/i8_nhwc_winograd__neon"]
OF_SIX = KERNELS["conv/i8_nhwc_winograd__avx2"]
PLAIN = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, i32, x_zero=True)


def test_sums_and_weights_fit_the_registers() -> None:
    for target, registers in ((V3, 16), (V4, 32)):
        for points in (1, 7, 49, 196):
            size = best_dot_tile(points, 96, 40, target)
            assert size.points * size.vectors + size.vectors < registers


def test_bytes_of_the_kind_that_a_machine_does_not_multiply_are_shifted() -> None:
    signed = replace(V4, options=(*V4.options, ("dot_signed", 1)))
    assert (shifted(i8, V4), shifted(u8, V4)) == (128, 0)
    assert (shifted(i8, signed), shifted(u8, signed)) == (0, -128)


def test_channels_are_zipped_as_unpacking_bytes_and_words_does() -> None:
    channels = zipped(np.arange(32), 8).reshape(4, 2, 4)
    for vector in range(4):
        for half in range(2):
            assert channels[vector, half].tolist() == list(range(16 * half + 4 * vector, 16 * half + 4 * vector + 4))


def test_wide_numbers_lie_as_even_and_odd_lanes() -> None:
    assert halves(np.arange(8, dtype=np.int64), 8).tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
    assert halves(np.arange(8, dtype=np.int32), 8).tolist() == list(range(8))


def test_sums_begin_with_what_zero_points_and_shifts_contribute() -> None:
    case = next(case for case in CONV.cases() if case.name == "1x1_i8")
    call, values = call_of(CONV, case)
    needs = CONV.match(call, V4)
    assert not isinstance(needs, No)
    call.blocks = needs.blocks
    packed = CONV.pack(call, {i: Constant.of(np.ascontiguousarray(values[i])) for i in range(1, 6)})[1]
    weights, zero, bias = values[1].reshape(10, 12).astype(np.int64), int(values[2]), values[3].reshape(-1)
    begins = packed[: 10 * 4].view(np.int32)
    assert begins.tolist() == (bias - (zero + 128) * weights.sum(1)).tolist()


def test_machines_without_vectors_of_sums_are_refused() -> None:
    call, _ = call_of(CONV, CONV.cases()[0])
    refusal = CONV.match(call, targets.load("generic"))
    assert isinstance(refusal, No) and "no vectors of sums" in refusal.reason


def test_winograd_serves_machines_without_dot_products() -> None:
    case = next(case for case in WINOGRAD.cases() if case.name == "many_channels")
    call, _ = call_of(WINOGRAD, case)
    for name, is_cheaper in (("aarch64", True), ("armv7a", True), ("aarch64-i8mm", False)):
        target = targets.load(name)
        assert (WINOGRAD.cost(call, target).time < CONV.cost(call, target).time) == is_cheaper
    refusal = WINOGRAD.match(call, replace(targets.load("aarch64"), prefer="flash"))
    assert isinstance(refusal, No) and "larger blob" in refusal.reason


def test_winograd_of_six_serves_many_channels_for_time() -> None:
    cases = {case.name: case for case in OF_SIX.cases()}
    call, _ = call_of(OF_SIX, cases["two_runs"])
    assert isinstance(OF_SIX.match(call, V3), Needs) and isinstance(OF_SIX.match(call, V4), Needs)
    for other in (replace(V4, prefer="ram"), replace(V4, options=(*V4.options, ("winograd", 2)))):
        refusal = OF_SIX.match(call, other)
        assert isinstance(refusal, No) and "larger blob" in refusal.reason
    for size, channels, is_cheaper in ((28, 128, True), (7, 512, False), (4, 64, False)):
        conv = rescaled_case("", PLAIN, (1, channels, size, size), (channels, channels, 3, 3), u8)
        call, _ = call_of(OF_SIX, conv)
        assert (OF_SIX.cost(call, V4).time < CONV.cost(call, V4).time) == is_cheaper
