"""The bound on instructions, as evidence has it."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from embedded.bounds import around
from embedded.quantized_models import autoencoder_int8
from mccompile.driver import Options, compile
from mccompile.emit.package import Package
from mccompile.evidence import time as times
from mccompile.evidence.time_bound import flow_facts, shown, time_bound
from mccompile.measure.building import flags_of
from mccompile.targets.api import load
from mccompile.toolchain.emulate import Emulated
from tests import small_models
from tests.evidence.test_time import SCHEMA


def test_an_integer_network_has_a_bound_that_counts_do_not_pass() -> None:
    package, target = small_models.compiled(autoencoder_int8(), Options(target="cortex-m4")), load("cortex-m4")
    found = times.time_certificate(package, target) | {"bound": time_bound(package, target)}
    jsonschema.validate(json.loads(json.dumps(found)), SCHEMA)
    assert found["bound"]["without"] == []
    parts, facts = found["bound"]["functions"], flow_facts(found["bound"])
    assert sum(part["instructions"] for part in parts) <= found["bound"]["instructions"]
    assert sorted(n for part in parts for n in part["steps"]) == [step.number for step in package.plan.steps()]
    assert re.search(r'^loop "\w+" \+ 0x[0-9a-f]+ \d+; // \w+\.[ch]:\d+$', facts, re.MULTILINE), facts
    assert found["run"]["high"] <= 1.01 * found["bound"]["instructions"], "which has no ticks in it"


@pytest.mark.thorough
def test_functions_of_the_library_have_a_bound_for_each_call() -> None:
    package = small_models.compiled(small_models.mlp(), Options(target="cortex-m3"))
    found = time_bound(package, load("cortex-m3"))
    whole = {"schema": "mccompile-time-1", "inputs": 0, "steps": [], "bound": found}
    jsonschema.validate(json.loads(json.dumps(whole)), SCHEMA)
    most = {each["function"]: (each["call"], each["instructions"]) for each in found["library"]}
    call, calls = most["__aeabi_fmul"]
    assert 0 < call < calls < found["instructions"]
    assert not any(name.startswith(("mcc_", f"{package.plan.prefix}_")) for name in most)


def of_sizes(folder: Path, most: int) -> Package:
    """A convolution over up to so many steps of time, and their mean."""
    nodes = [
        small_models.node("Conv", "x w", "c", pads=[1, 1]),
        small_models.node("Relu", "c", "r"),
        small_models.node("ReduceMean", "r", "y", axes=[2], keepdims=0),
    ]
    weights = {"w": small_models.floats(1, 4, 2, 3)}
    made = small_models.model("sized", nodes, [("x", (1, 2, "n"))], [("y", (1, 4))], weights)
    return compile(small_models.save(made, folder), Options(target="cortex-m4", dims={"n": (1, most)}))


def test_the_dearest_of_all_sizes_is_the_bound_and_need_not_be_the_largest(tmp_path: Path) -> None:
    package, target = of_sizes(tmp_path, 8), load("cortex-m4")
    found = time_bound(package, target)
    jsonschema.validate({"schema": "mccompile-time-1", "inputs": 0, "steps": [], "bound": found}, SCHEMA)
    of = {each["given"]["n"]: each["instructions"] for each in found["sizes"]}
    assert [*of] == [8, 7, 6, 5, 4, 3, 2, 1] and of[7] > of[8] > of[4] > of[1]
    assert found["instructions"] == of[7] and f"at most {of[7]} for any of 8 sizes" in shown(found)
    with tempfile.TemporaryDirectory() as scratch:
        package.write(Path(scratch, "out"))
        model = Emulated.build(Path(scratch, "out"), target, None, flags_of(package, target))
        own = around(model.program, target.compiler, "sized_run")
        counts = {n: model.count({"x": np.ones((1, 2, n), np.float32)}).run_instructions - own for n in (8, 7, 1)}
    assert counts == {n: of[n] for n in counts}


def test_a_bound_over_too_many_sizes_is_refused_with_their_number(tmp_path: Path) -> None:
    found = time_bound(of_sizes(tmp_path, 65), load("cortex-m4"))
    assert found["instructions"] is None and "sizes" not in found
    assert shown(found).startswith("no bound: n may be given in 65 ways, and each of at most 64 is followed")


@pytest.mark.parametrize("target", ["generic", "armv7a"])
def test_other_machines_say_that_they_have_none(target: str) -> None:
    found = time_bound(small_models.compiled(small_models.mlp()), load(target))
    assert found["instructions"] is None and shown(found).startswith("no bound: only machine code of Cortex-M")
