"""The bound on instructions, as evidence has it."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest

from embedded.quantized_models import autoencoder_int8
from mccompile.driver import Options
from mccompile.evidence import time as times
from mccompile.evidence.time_bound import flow_facts, shown, time_bound
from mccompile.targets.api import load
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


def test_functions_of_the_library_have_a_bound_for_each_call() -> None:
    package = small_models.compiled(small_models.mlp(), Options(target="cortex-m3"))
    found = time_bound(package, load("cortex-m3"))
    whole = {"schema": "mccompile-time-1", "inputs": 0, "steps": [], "bound": found}
    jsonschema.validate(json.loads(json.dumps(whole)), SCHEMA)
    most = {each["function"]: (each["call"], each["instructions"]) for each in found["library"]}
    call, calls = most["__aeabi_fmul"]
    assert 0 < call < calls < found["instructions"]
    assert not any(name.startswith(("mcc_", f"{package.plan.prefix}_")) for name in most)


@pytest.mark.parametrize("target", ["generic", "armv7a"])
def test_other_machines_say_that_they_have_none(target: str) -> None:
    found = time_bound(small_models.compiled(small_models.mlp()), load(target))
    assert found["instructions"] is None and shown(found).startswith("no bound: only machine code of Cortex-M")
