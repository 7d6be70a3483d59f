"""Where rows of tensors are too wide for the near one of two memories, parts are computed in tiles of columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import ModelProto, parser

from mccompile.base.errors import CheckFailed
from mccompile.driver import Options, compile
from mccompile.driver.compiling import settled
from mccompile.emit.traffic import transfers
from mccompile.measure.correctness import check
from mccompile.targets.api import Pool
from tests.passes.graph.tile_columns.test_tile_columns import network, with_weights
from tests.small_models import save
from tests.small_quantized import convolutions
from tests.thorough import some

POOLED = """(float[1,4,8,8] x, float[64,4,1,1] w) => (float[1,64,1,1] y) {
    a = Conv (x, w)
    y = GlobalAveragePool(a)
}"""
# Bytes of the near memory: by rows alone each takes half as much again at least.
NEAR = {"wide": 8000, "residual": 1000, "pools": 400, "blocks": 800, "int8": 1400, "pooled": 1200}


def made(name: str) -> ModelProto:
    if name == "int8":
        return convolutions(64, [(8, 3, 1), (0, 3, 1), (4, 3, 2), (0, 3, 2)])
    return with_weights(POOLED, 3) if name == "pooled" else network(name)


def memories(near: int, far: int | None = None, **options: object) -> Options:
    return Options(mem=(Pool("near", near, 0), Pool("far", far, 1, copied=True)), **options)


@some(2, "name", sorted(NEAR))
def test_tiles_fit_where_rows_do_not(name: str, tmp_path: Path) -> None:
    layout = "nhwc" if name in ("int8", "pools", "wide") else "onnx"
    verdict = check(save(made(name), tmp_path), memories(NEAR[name], io_layout=layout), runs=1)
    plan = verdict.package.plan
    assert verdict.ok and plan.column_tiles and plan.arenas[0].bytes <= NEAR[name]


def test_what_tiles_make_lies_far_away_where_it_does_not_fit(tmp_path: Path) -> None:
    found = compile(save(made("wide"), tmp_path), memories(NEAR["wide"])).plan
    moved, (x, y) = transfers(found)["far"], (tensor.type.max_bytes for tensor in (*found.inputs, *found.outputs))
    assert max(x, y) > NEAR["wide"] / 2 and moved["written_bytes"] >= y and moved["read_bytes"] > x


def test_nothing_is_computed_again_where_rows_fit(tmp_path: Path) -> None:
    file = save(made("residual"), tmp_path)
    plain, fits = compile(file), compile(file, memories(1600, io_layout="nhwc"))
    assert fits.plan.column_tiles == () and fits.macs == plain.macs


def test_less_may_be_spent_on_it(tmp_path: Path) -> None:
    file = save(made("wide"), tmp_path)
    assert compile(file, memories(3000)).macs > 1.05 * compile(file).macs
    with pytest.raises(CheckFailed, match="two memories are too small"):
        compile(file, memories(3000, recompute=1.05))


def test_settled_options_lead_to_the_same_plan(tmp_path: Path) -> None:
    file, options = save(made("pooled"), tmp_path), memories(NEAR["pooled"])
    plan, again = compile(file, options).plan, settled(file, options)
    assert again.column_tiles == plan.column_tiles != () and compile(file, again).plan.arenas == plan.arenas


def test_too_little_for_tiles_is_refused_as_before(tmp_path: Path) -> None:
    with pytest.raises(CheckFailed, match="two memories are too small"):
        compile(save(made("windows"), tmp_path), memories(32))


def test_weights_that_come_in_are_no_rows_of_a_part(tmp_path: Path) -> None:
    made = parser.parse_model("""<ir_version: 9, opset_import: ["": 18]>
        g (float[4,1,1,2] w) => (float[1,4,2,1] y)
        <float[1,1,6] x = {1, 2, 3, 4, 5, 6}, int64[2] size = {2, 3}, int64[2] block = {1, 1}> {
            picture = Col2Im (x, size, block)
            y = Conv <strides = [1, 3]> (picture, w)
        }""")
    assert check(save(made, tmp_path), memories(64), runs=1).ok


def test_tensors_without_elements_have_no_columns(tmp_path: Path) -> None:
    text = "(float[2,1,0,16] x) => (float[2,1,0,16] y) {y = Cosh(x)}"
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> g {text}')
    assert not compile(save(model, tmp_path), memories(4096)).plan.column_tiles
