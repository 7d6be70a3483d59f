"""What evidence claims holds of small programs on emulated cores, and a claim that does not hold is told."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from mccompile.driver import Options
from mccompile.evidence.time import Varying
from mccompile.toolchain.bounds.program import Bound
from mccompile.toolchain.tools import missing
from tests.fuzz import claims
from tests.fuzz.builder import Input
from tests.fuzz.subject import Subject

LACKING = missing(["arm-none-eabi-gcc", "qemu-system-arm"])
pytestmark = pytest.mark.skipif(bool(LACKING), reason=f"{', '.join(LACKING)} not found")

MODEL = """
    <ir_version: 10, opset_import: ["" : 21]>
    small (float[3,4] x) => (float[4,3] y)
    <float[4] c = {1, 2, 3, 0.5}>
    { a = Add(x, c)  r = Relu(a)  y = Transpose<perm = [1, 0]>(r) }
"""


def small() -> Subject:
    return Subject(parser.parse_model(MODEL), (Input("x", np.dtype(np.float32), (3, 4), "exact"),))


@pytest.mark.parametrize("core", claims.CORES)
def test_claims_hold(core: str) -> None:
    found, kind = claims.broken(small(), 1, core)
    assert found == [] and kind.startswith("bound")


def test_options_are_drawn_that_code_with_evidence_may_have() -> None:
    drawn = [claims.asked(small(), "cortex-m33", np.random.default_rng(seed)) for seed in range(40)]
    assert {each.target for each in drawn} == {"cortex-m33"}
    for name in ("prefer", "mem", "slices", "keep_inputs", "external"):
        assert len({getattr(each, name) for each in drawn}) > 1, name
    assert not any(pool.copied for each in drawn for pool in each.mem)


def test_a_step_that_varies_and_is_not_named_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = Subject(parser.parse_model(MODEL.replace("Relu", "Erf")), small().inputs)
    assert claims.broken(drawn, 1, "cortex-m4", Options(target="cortex-m4"))[0] == []
    monkeypatch.setattr(claims, "named", lambda step, _: Varying(step.number, step.function.name, ()))
    found, _ = claims.broken(drawn, 1, "cortex-m4", Options(target="cortex-m4"))
    assert len(found) == 1 and found[0].endswith("instructions, and is not named")


def test_a_bound_that_is_too_low_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "bound", lambda *_: Bound(10, ()))
    found, _ = claims.broken(small(), 1, "cortex-m4")
    assert [each.endswith("instructions, its bound is 10") for each in found] == [True]


def test_a_bound_of_stack_that_is_too_far_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    far = {"bounds": {f"claims_{name}": {"bytes": 4000} for name in ("init", "run")}}
    monkeypatch.setattr(claims, "of_graph", lambda *_: far)
    found, _ = claims.broken(small(), 1, "cortex-m4")
    assert len(found) == 2 and all(each.endswith("bytes of stack, its bound is 4000") for each in found)
