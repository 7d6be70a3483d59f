"""Whole compilations against onnx's own evaluator: every small model, with and without optional passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mccompile
from mccompile.base.errors import WrongUse
from mccompile.driver import Options
from mccompile.driver.options import RowByRow
from mccompile.emit.blob import Carrier
from mccompile.passes.api import WeightsDtype
from mccompile.passes.io.turn_io import IoLayout
from mccompile.pipeline import GRAPH_PASSES, PROGRAM_PASSES
from mccompile.targets.api import Prefer
from mccompile.toolchain.run import Model
from tests import small_models
from tests.small_models import compiled, random_inputs, reference, save, written

OPTIONAL = [step.name for step in (*GRAPH_PASSES, *PROGRAM_PASSES) if step.optional]


def check(name: str, folder: Path, options: Options) -> None:
    made = small_models.ALL[name]()
    inputs = random_inputs(made)
    results = Model.build(written(made, folder, options)).run(inputs)
    for output, wanted in reference(made, inputs).items():
        if wanted.dtype.kind in "OU":
            assert results[output].tolist() == wanted.tolist()
        else:
            np.testing.assert_allclose(results[output], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("optimize", [True, False], ids=["optimized", "O0"])
@pytest.mark.parametrize("name", small_models.ALL)
def test_a_small_model_computes_what_it_says(name: str, optimize: bool, tmp_path: Path) -> None:
    check(name, tmp_path, Options(optimize=optimize))


@pytest.mark.parametrize("without", sorted(set(OPTIONAL)))
def test_every_optional_pass_can_be_left_out(without: str, tmp_path: Path) -> None:
    check("branches", tmp_path, Options(without=frozenset({without})))


def test_the_next_kernel_serves_where_one_is_left_out() -> None:
    def chosen(without: frozenset[str]) -> list[str]:
        package = compiled(small_models.conv(), Options(target="x86-64-v3", without=without))
        return [step.function.kernel.id for step in package.plan.steps()]

    before = chosen(frozenset())
    after = chosen(frozenset({before[0]}))
    assert before[0] not in after
    counts = [sum(id.startswith("conv/") for id in ids) for ids in (before, after)]
    assert counts[0] == counts[1] > 0


@pytest.mark.parametrize("name", small_models.ALL)
def test_inputs_that_are_kept_are_not_written_to(name: str) -> None:
    plan = compiled(small_models.ALL[name](), Options(keep_inputs=True)).plan
    written_to = [a for step in plan.steps() for a in step.arguments if a.written and a.address.base == "arena"]
    for tensor in plan.inputs:
        assert isinstance(tensor.address.offset, int)
        low, high = tensor.address.offset, tensor.address.offset + tensor.type.max_bytes
        assert not [a for a in written_to if a.low < high and low < a.high]


def test_observed_tensors_are_outputs(tmp_path: Path) -> None:
    made = small_models.conv()
    options = Options(observe=("c1", "sum"))
    results = Model.build(written(made, tmp_path, options)).run(random_inputs(made))
    assert list(results) == ["y", "c1", "sum"]
    np.testing.assert_allclose(results["y"], np.maximum(results["sum"], 0))


def test_the_python_interface_is_one_call(tmp_path: Path) -> None:
    made = mccompile.compile(save(small_models.mlp(), tmp_path), mccompile.Options(name="dense"))
    made.write(tmp_path / "out")
    assert (tmp_path / "out" / "dense.h").is_file()
    assert made.package.plan.arena_bytes >= made.package.plan.arena_bound


def test_a_misspelt_option_is_refused() -> None:
    for asked in ({"without": frozenset({"x"})}, {"target": "x"}):
        with pytest.raises(WrongUse):
            compiled(small_models.fixed(), Options(**asked))


@pytest.mark.parametrize("asked", [{"planner": "x"}, {"prefer": "x"}, {"blob": "x"}, {"threads": 0}], ids=str)
def test_there_are_no_options_with_a_value_that_means_nothing(asked: dict[str, Any]) -> None:
    with pytest.raises(WrongUse):
        Options(**asked)


def test_choices_given_as_strings_are_members() -> None:
    options = Options(prefer="balanced", blob="external", rows="off", io_layout="nhwc", weights_dtype="f16")
    assert options == Options(
        prefer=Prefer.BALANCED,
        blob=Carrier.EXTERNAL,
        rows=RowByRow.OFF,
        io_layout=IoLayout.NHWC,
        weights_dtype=WeightsDtype.F16,
    )
    assert isinstance(options.blob, Carrier) and options.memory(options.resolved_target()).worth == 1
