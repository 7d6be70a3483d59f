"""Lifetimes in programs of several phases: what is given before a phase holds nothing in the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from mccompile.driver import Options
from mccompile.driver.training import train
from mccompile.passes.learn.phase_graphs import Learning
from mccompile.plan.ir import Plan
from mccompile.plan.lives import Life

MODEL = """<ir_version: 8, opset_import: ["" : 17]> net (float[4, 8] x) => (float[4, 3] y) {
    a = MatMul(x, w1)  b = Tanh(a)  y = MatMul(b, w2) }"""


def planned(folder: Path, **options: object) -> tuple[Plan, dict[str, Life]]:
    model = onnx.parser.parse_model(MODEL)
    for name, shape in {"w1": (8, 6), "w2": (6, 3)}.items():
        model.graph.initializer.append(numpy_helper.from_array(np.ones(shape, np.float32), name))
    onnx.save(model, folder / "net.onnx")
    plan = train(folder / "net.onnx", Learning("mse:y"), Options(target="generic", **options)).plan  # type: ignore[arg-type]
    return plan, {life.name: life for life in plan.lives}


def test_inputs_are_idle_between_the_phases_that_read_them(tmp_path: Path) -> None:
    plan, lives = planned(tmp_path)
    run, learn, step = (phase.items for phase in plan.phases)
    assert lives["x"].at(0)
    assert lives["x"].at(run + 1)
    assert not lives["x"].at(run)
    assert not lives["x"].at(run + learn)
    assert (lives["target"].start, lives["rate"].start) == (run + 1, run + learn + 1)
    assert lives["y"].end <= run + 1
    assert all(lives["w2"].at(time) for time in range(run + learn + step + 1))


def test_inputs_that_must_be_kept_are_never_idle(tmp_path: Path) -> None:
    plan, lives = planned(tmp_path, keep_inputs=True)
    assert not lives["x"].idle
    assert lives["x"].end > len(plan.items)


def test_what_a_phase_hands_out_is_whole_while_a_loop_writes_it(tmp_path: Path) -> None:
    """The loop is the last step of the phase: rows of the trips before must not be overwritten in the next one."""
    body = "body (float[1, 6] s, float[1, 6] row) => (float[1, 6] t, float[1, 6] o) { t = Add(s, row) o = Neg(t) }"
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        net (float[4, 1, 8] x) => (float[4, 1, 6] y) <float[1, 6] s = {{0, 0, 0, 0, 0, 0}}> {{
            a = MatMul(x, w) e, y = Scan <num_scan_inputs = 1, body = {body}> (s, a) }}""")
    model.graph.initializer.append(numpy_helper.from_array(np.ones((8, 6), np.float32), "w"))
    onnx.save(model, tmp_path / "net.onnx")
    plan = train(tmp_path / "net.onnx", Learning("mse:y"), Options(target="generic", optimize=False)).plan
    lives = {life.name: life for life in plan.lives}
    written, last = lives["e_2"], lives["e/body/o"]  # y, and its row of a trip
    assert written.low == plan.outputs[0].address.offset
    assert written.start < last.start
    assert written.end >= last.end
