"""Weights through a window: what copies bring, when they begin, and that nobody meets one under way."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser

from mccompile.base.errors import CheckFailed, InternalError, UnsupportedModel
from mccompile.emit.folder import write_folder
from mccompile.emit.package import Package
from mccompile.emit.traffic import traffic
from mccompile.measure.correctness import build
from mccompile.option_texts import window
from mccompile.passes.memory.sharing import sharing_problems
from mccompile.plan.copies import Awaited, Copied, copies
from mccompile.plan.ir import Item
from mccompile.plan.verify import verify
from mccompile.program import ir
from mccompile.program.clone import clone
from mccompile.program.text import constants_of, read, show
from mccompile.targets import api as targets
from tests.passes.graph.tile_columns.test_tile_columns import package, results


@cache
def layers(count: int = 4, wide: int = 32) -> ModelProto:
    """Products with a nonlinear function between them."""
    lines = "".join(f" a{n} = MatMul(h{n}, w{n}) h{n + 1} = Sigmoid(a{n})" for n in range(count))
    made = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[2,{wide}] x) => (float[2,{wide}] y) {{'
        f" h0 = Relu(x) {lines} y = Softmax(h{count}) }}"
    )
    chance = np.random.default_rng(1)
    for n in range(count):
        weights = (chance.standard_normal((wide, wide)) / 6).astype(np.float32)
        made.graph.initializer.append(numpy_helper.from_array(weights, f"w{n}"))
    return made


def compiled(model: ModelProto, window: int) -> Package:
    return package(model, weights_window=window)


def order(items: Sequence[Item]) -> str:
    """Copies begun, awaited, and what is between them."""
    return "".join("c" if isinstance(i, Copied) else "a" if isinstance(i, Awaited) else "." for i in items)


def moved(found: Package) -> dict[str, int]:
    said = traffic(found.plan)
    assert said is not None
    return said


def test_each_byte_is_copied_once_while_steps_run() -> None:
    found = compiled(layers(), 8192)
    brought = copies(found.plan.items)
    assert [copy.bytes for copy in brought] == [4096] * 4
    assert [copy.source for copy in brought] == [0, 4096, 8192, 12288]
    assert order(found.plan.items).replace(".", "") == "cacacaca"
    assert "aa" not in order(found.plan.items) and "ca" not in order(found.plan.items)[1:]
    assert json.loads(found.files["report.json"])["weights_window"] == traffic(found.plan)
    assert moved(found)["overlapped_bytes"] == moved(found)["read_bytes"] == 4 * 4096


def test_a_window_for_one_copy_waits_for_its_readers() -> None:
    found = package(layers(), weights_window=4096, without=frozenset({"split_weights"}))
    assert moved(found)["overlapped_bytes"] == 4096  # the first one, while Relu runs
    assert order(found.plan.items).count("ca") == 3


def test_small_constants_come_together() -> None:
    assert len(copies(compiled(layers(), 1 << 16).plan.items)) == 1
    assert len(copies(compiled(layers(), 1 << 15).plan.items)) == 2


@pytest.mark.parametrize("window", [2048, 4096, 8192, 1 << 16])
def test_results_stay_the_same(window: int) -> None:
    made = layers()
    wanted, found = results(package(made), made)["y"], results(compiled(made, window), made)["y"]
    np.testing.assert_array_equal(found, wanted)


def test_what_is_larger_than_the_window_is_split() -> None:
    found = compiled(layers(2, 64), 8192)  # 16 KB each
    assert max(copy.bytes for copy in copies(found.plan.items)) <= 4096
    assert [step.op for step in found.plan.steps()].count("gemm") == 16
    assert moved(found)["read_bytes"] == 2 * 64 * 64 * 4


def test_a_convolution_is_split_by_channels() -> None:
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[1,8,6,6] x) => (float[1,48,6,6] y) {'
        " a = Conv<pads=[1,1,1,1]>(x, w, b) y = Relu(a) }"
    )
    chance = np.random.default_rng(2)
    for name, shape in {"w": (48, 8, 3, 3), "b": (48,)}.items():
        made.graph.initializer.append(numpy_helper.from_array(chance.standard_normal(shape).astype(np.float32), name))
    found = compiled(made, 10000)
    assert [step.op for step in found.plan.steps()].count("conv") == 6
    np.testing.assert_array_equal(results(found, made)["y"], results(package(made), made)["y"])


def test_a_window_that_is_too_small_is_refused_with_the_least_one() -> None:
    table = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (int64[2] i) => (float[2,8] y) { y = Gather(t, i) }'
    )
    table.graph.initializer.append(numpy_helper.from_array(np.ones((100, 8), np.float32), "t"))
    with pytest.raises(CheckFailed, match="--weights-window 3200"):
        compiled(table, 1024)
    compiled(table, 3200)


def test_an_output_may_be_a_constant() -> None:
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y, float[3] z) {'
        " y = Relu(x) z = Identity(c) }"
    )
    made.graph.initializer.append(numpy_helper.from_array(np.arange(3, dtype=np.float32), "c"))
    np.testing.assert_array_equal(results(compiled(made, 64), made)["z"], [0, 1, 2])


def test_constants_without_elements_have_an_address(tmp_path: Path) -> None:
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y, float[0] z) {'
        " y = Relu(x) z = Identity(c) }"
    )
    made.graph.initializer.append(numpy_helper.from_array(np.zeros(0, np.float32), "c"))
    found = compiled(made, 64)
    write_folder(tmp_path, found.files)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{tmp_path / 'runtime'}"]
    subprocess.run(["cc", *flags, "-c", f"{found.plan.prefix}.c", "-o", "model.o"], cwd=tmp_path, check=True)
    assert results(found, made)["z"].shape == (0,)


def test_sizes_are_read() -> None:
    assert [window("64K"), window(65536), window("")] == [65536, 65536, 0]
    for wrong, likely in {"64q": "64K", "0": "64K", "big": "64K"}.items():
        with pytest.raises(ValueError, match=f"did you mean --weights-window {likely}\\?"):
            window(wrong)


def test_strings_are_refused() -> None:
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 21]> g (string[2] x) => (string[2] y) { y = StringConcat(x, x) }'
    )
    with pytest.raises(UnsupportedModel, match="strings point at their text"):
        compiled(made, 1024)


def test_programs_with_copies_are_printed_and_read() -> None:
    seen = compiled(layers(), 8192).witness
    assert seen is not None
    text = show(seen.program)
    assert "copy %weights" in text and "await %weights" in text
    assert show(read(text, constants_of(seen.program))) == text
    assert show(clone(seen.program)) == text


def test_nobody_reads_what_has_not_come() -> None:
    seen = compiled(layers(), 8192).witness
    assert seen is not None

    def problems(body: list[ir.Item]) -> list[str]:
        program = replace(seen.program, body=body)
        return sharing_problems(program, seen.places, seen.registry, seen.target, keep_inputs=False)

    body = seen.program.body
    assert not problems(body)
    late = next(n for n, item in enumerate(body) if isinstance(item, ir.Await))
    assert any("has not come yet" in each for each in problems([*body[:late], *body[late + 1 :]]))


def test_the_verifier_refuses_steps_that_meet_a_copy() -> None:
    plan = compiled(layers(), 8192).plan
    verify(plan)
    late = next(n for n, item in enumerate(plan.items) if isinstance(item, Awaited))
    moved = [*plan.items[:late], *plan.items[late + 1 :], plan.items[late]]
    with pytest.raises(InternalError, match="meets what is copied"):
        verify(replace(plan, items=tuple(moved)))
    with pytest.raises(InternalError, match="leaves the blob or the window"):
        verify(replace(plan, window=4095))
    with pytest.raises(InternalError, match="leaves arena"):
        verify(replace(plan, arenas=(replace(plan.arenas[0], bytes=4096, bound=0),)))
    with pytest.raises(InternalError, match="nobody awaits"):
        verify(replace(plan, items=plan.items[:late]))
    with pytest.raises(InternalError, match="but not under way"):
        verify(replace(plan, items=plan.items[late:]))


@pytest.mark.parametrize("target", ["cortex-m4", "riscv64v"])
def test_it_runs_under_emulation(target: str) -> None:
    machine = targets.load(target)
    found = package(layers(2), target=target, weights_window=8192)
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32)
    wanted = build(package(layers(2)), targets.load("generic")).run({"x": x})["y"]
    np.testing.assert_allclose(build(found, machine).run({"x": x})["y"], wanted, rtol=1e-5)
