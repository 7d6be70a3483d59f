"""What is said of a compiled model as one object fits its schema, and its links between steps and buffers hold."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import numpy as np
import pytest

from mccompile.base.discovery import data_folder
from mccompile.driver import Options
from mccompile.emit.analysis import analysis_of
from mccompile.targets.api import Pool, Prefer
from tests import small_models
from tests.small_models import compiled, model, node

SCHEMA = json.loads((data_folder("runtime_c").parent / "mccompile/emit/report.schema.json").read_text())


def test_what_lies_over_others_is_at_the_peak_itself() -> None:
    nodes = [node("Softmax", "x", "a"), node("MatMul", "a w", "b"), node("Softmax", "b", "y")]
    weights = {"w": np.ones((8, 32), np.float32)}
    report = json.loads(compiled(model("d", nodes, [("x", (2, 8))], [("y", (2, 32))], weights)).files["report.json"])
    place = {b["name"]: (b["low"], b["high"]) for b in report["buffers"]}
    assert place["a"] == place["x"], "the first Softmax works in place"
    assert report["at_peak"] == ["a", "b"] == [b["name"] for b in report["buffers"] if b.get("at_peak")]


def test_steps_know_whose_results_they_read() -> None:
    nodes = [
        node("Softmax", "x", "a"),
        node("Sin", "a", "b"),
        node("Concat", "a b", "c", axis=0),
        node("Exp", "c", "y"),
    ]
    steps = analysis_of(compiled(model("d", nodes, [("x", (2, 3))], [("y", (4, 3))]), Options(optimize=False)))["steps"]
    place = {step["name"]: number for number, step in enumerate(steps)}

    def ancestors(number: int) -> set[int]:
        return {number}.union(*(ancestors(before) for before in steps[number]["after"]))

    softmax, sin = place["a/Softmax"], place["b/Sin"]
    assert steps[softmax]["after"] == [] and steps[sin]["after"] == [softmax]
    assert ancestors(place["y/Exp"]) == set(range(len(steps)))


@pytest.mark.parametrize("options", [Options(), Options(prefer=Prefer.RAM), Options(mem=(Pool("a", None, 0),))])
@pytest.mark.parametrize("make", [small_models.branches, small_models.conv, small_models.mlp])
def test_steps_touch_buffers_while_these_are_alive(make: Any, options: Options) -> None:
    analysis = analysis_of(compiled(make(), options))
    touched = [(step, touch) for step in analysis["steps"] for touch in step["touches"]]
    assert touched
    for step, touch in touched:
        buffer = analysis["buffers"][touch["buffer"]]
        low, high = touch["bytes"]
        assert buffer["start"] <= step["moment"] < buffer["end"] and buffer["low"] <= low <= high <= buffer["high"]


def test_measurements_stand_at_their_steps() -> None:
    package = compiled(small_models.conv())
    functions = [function.name for function in package.plan.functions]
    count = len(list(package.plan.steps()))
    measured = {
        "function_code_bytes": dict.fromkeys(functions, 40),
        "steps": [{"instructions": n} for n in range(count)],
    }
    steps = analysis_of(package, measured)["steps"]
    assert [step["measured_instructions"] for step in steps] == [*range(count)]
    assert all(step["code_bytes"] == 40 and "measured_us" not in step for step in steps)


@pytest.mark.parametrize("options", [Options(), Options(mem=(Pool("a", None, 0),)), Options(slices=True)])
def test_report_and_analysis_fit_the_schema(options: Options) -> None:
    package = compiled(small_models.branches(), options)
    jsonschema.validate(json.loads(package.files["report.json"]), SCHEMA)
    jsonschema.validate(analysis_of(package, {"run_instructions": 5}), SCHEMA)
    unknown = json.loads(package.files["report.json"]).keys() - SCHEMA["properties"].keys()
    assert not unknown, "the schema does not say what these are"
