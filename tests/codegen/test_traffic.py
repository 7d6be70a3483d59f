"""Models of kernels that move elements, beside those of products: in proportion, by what a machine's file says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mccompile.base.dtypes import DType, f32, i8
from mccompile.codegen.traffic import bytes_cycles, bytes_touched, has_traffic, traffic
from mccompile.driver import Options, pass_manager
from mccompile.expr.ir import apply, cast, literal, operand
from mccompile.kernels.api import Target
from mccompile.kinds.api import Kind
from mccompile.kinds.concat import Concat
from mccompile.kinds.gemm import Gemm
from mccompile.kinds.map import Map
from mccompile.kinds.normalize import Normalize
from mccompile.kinds.pad import Pad
from mccompile.program.ir import Buffer, Call
from mccompile.targets import api

X = operand(0, f32)
ADD = Map(apply("add", X, operand(1, f32)))
HOSTS = ("x86-64-v3", "x86-64-v4", "aarch64")


def time_of(target: str, kind: Kind, ins: list[tuple[int, ...]], out: tuple[int, ...], dtype: DType = f32) -> float:
    context = pass_manager(Options(target=target)).context
    views = [Buffer(f"x{n}", dtype, shape, "input").whole() for n, shape in enumerate((*ins, out))]
    call = Call(kind, tuple(views[:-1]), tuple(views[-1:]), provenance=("test",))
    return context.registry.choose(call, context.target).candidates[0].cost.time


@pytest.mark.parametrize("target", HOSTS)
def test_a_copy_beside_a_product(target: str) -> None:
    """A product of 64 terms an element takes at least 64 / (fmas * lanes) cycles, a copy not even that."""
    machine = api.load(target)
    rows, columns, depth = 128, 96, 64
    product = time_of(target, Gemm(f32), [(rows, depth), (depth, columns)], (rows, columns))
    least = rows * columns * depth / (machine.machine.fmas * machine.vector_bytes / 4)
    assert least <= product
    halves = [(rows, columns // 2)] * 2
    moves = {
        "concat": time_of(target, Concat(1), halves, (rows, columns)),
        "add": time_of(target, ADD, [(rows, columns)] * 2, (rows, columns)),
        "pad": time_of(target, Pad((1, 0), (1, 0)), [(rows - 2, columns)], (rows, columns)),
    }
    nbytes = rows * columns * 4
    for name, time in moves.items():
        assert nbytes / machine.machine.from_second <= time < product / 2, name


@pytest.mark.parametrize("target", HOSTS)
def test_times_grow_with_the_work(target: str) -> None:
    def mapped(function: str, rows: int) -> float:
        expr = apply("max", X, literal(0, f32)) if function == "max" else apply(function, X)
        return time_of(target, Map(expr), [(rows, 64)], (rows, 64))

    assert mapped("max", 64) < mapped("max", 128) < mapped("exp", 128)
    far = api.load(target).machine.from_third
    assert mapped("max", 1 << 17) > 0.9 * (1 << 17) * 64 * 8 / far  # out of the caches
    shape = (256, 64)
    measures = [time_of(target, Normalize((1,), name, f32), [shape], shape) for name in ("rms", "softmax")]
    assert measures[0] < measures[1]


def test_bytes_of_views() -> None:
    target = api.load("x86-64-v3")
    whole = Buffer("x", f32, (64, 32), "input").whole()
    assert bytes_touched(whole, target) == 64 * 32 * 4
    assert bytes_touched(replace(whole, strides=(0, 1)), target) == 32 * 4
    every_other = replace(whole, shape=(64, 16), strides=(32, 2))
    assert bytes_touched(every_other, target) == pytest.approx(64 * 32 * 4, rel=0.01)
    across = Buffer("x", f32, (64, 1024), "input").whole()
    assert bytes_touched(across, target, 0) == 64 * 1024 * 64  # a line each: all lie in one set
    assert bytes_touched(Buffer("x", f32, (64, 1040), "input").whole(), target, 0) == 64 * 1040 * 4
    assert traffic((whole, whole), target) == bytes_cycles(2 * 64 * 32 * 4, target)


def test_cores_without_caches_count_runs_and_words() -> None:
    def copied(name: str) -> tuple[float, Target]:
        return time_of(name, Concat(1), [(8, 8), (8, 8)], (8, 16)), api.load(name)

    for name in ("cortex-m0", "cortex-m4", "cortex-m55", "rv32imc", "generic"):
        time, target = copied(name)
        assert not has_traffic(target) and time == 2 * 8 * (target.machine.copied_run + 8)


BYTES = Concat(1)
COUNTED = {"cortex-m0": 12_539, "cortex-m4": 1_546, "cortex-m55": 1_356, "rv32imc": 3_657}  # instructions


@pytest.mark.parametrize("target", COUNTED)
def test_bytes_that_lie_together_are_copied_by_words(target: str) -> None:
    """192 runs of 8 bytes, where elements that are moved one by one would take 12 times as long on most cores."""
    found = time_of(target, BYTES, [(96, 8), (96, 8)], (96, 16), i8)
    assert 0.7 * COUNTED[target] < found < 1.5 * COUNTED[target]


def test_numbers_that_all_elements_share_are_loaded_once() -> None:
    """Quantizing a picture takes 14 instructions an element on a core with an FPU, not 48."""
    step, zero = operand(1, f32), operand(2, f32)
    moved = apply("add", apply("round_even", apply("div", X, step)), zero)
    kind = Map(cast(apply("max", moved, literal(-128, f32)), i8))
    context = pass_manager(Options(target="cortex-m4")).context
    x, y = Buffer("x", f32, (64, 64), "input").whole(), Buffer("y", i8, (64, 64), "output").whole()
    shared = [Buffer(name, f32, (), "constant").whole().broadcast_to((64, 64)) for name in ("step", "zero")]
    call = Call(kind, (x, *shared), (y,), provenance=("test",))
    time = context.registry.choose(call, context.target).candidates[0].cost.time
    assert time < 24 * 64 * 64
