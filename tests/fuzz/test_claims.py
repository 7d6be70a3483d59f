"""What evidence claims holds of small programs on emulated cores, and a claim that does not hold is told."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from mccompile.base.dtypes import f32, i64
from mccompile.driver import Options
from mccompile.evidence.time import Varying
from mccompile.toolchain.bounds.program import Bound
from mccompile.toolchain.model_report import Tensor
from mccompile.toolchain.tools import missing
from tests.fuzz import claims
from tests.fuzz.builder import Input
from tests.fuzz.subject import Subject
from tests.thorough import some

LACKING = missing(claims.TOOLS)
emulated = pytest.mark.skipif(bool(LACKING), reason=f"{', '.join(LACKING)} not found")

MODEL = """
    <ir_version: 10, opset_import: ["" : 21]>
    small (float[3,4] x) => (float[4,3] y)
    <float[4] c = {1, 2, 3, 0.5}>
    { a = Add(x, c)  r = Erf(a)  y = Transpose<perm = [1, 0]>(r) }
"""


def small() -> Subject:
    return Subject(parser.parse_model(MODEL), (Input("x", np.dtype(np.float32), (3, 4), "exact"),))


@emulated
@some(1, "core", ["cortex-m0", "cortex-m55"])
def test_claims_hold(core: str) -> None:
    found, kind = claims.broken(small(), 1, core, count=1)
    assert found == [] and kind.startswith("bound")


def test_floats_are_extreme_beside_integers_that_are_drawn() -> None:
    """An index that is out of range says nothing of a bound, a float that only slow code reads does."""
    places = Input("i", np.dtype(np.int64), (2,), "integer", 0, 2)
    drawn = Subject(parser.parse_model(MODEL), (*small().inputs, places))
    given = [Tensor("x", "x", f32, (3, 4), 48), Tensor("i", "i", i64, (2,), 16)]
    own, *found = claims.inputs_of(drawn, given, seed=1, count=9)
    assert len(found) == 9 and all((each["i"] == own["i"]).all() for each in found)
    assert any(np.isinf(each["x"]).any() for each in found) and np.isfinite(own["x"]).all()


def test_options_are_drawn_that_code_with_evidence_may_have() -> None:
    drawn = [claims.asked(small(), "cortex-m33", np.random.default_rng(seed)) for seed in range(40)]
    assert {each.target for each in drawn} == {"cortex-m33"}
    for name in ("prefer", "mem", "slices", "keep_inputs", "external"):
        assert len({getattr(each, name) for each in drawn}) > 1, name
    assert not any(pool.copied for each in drawn for pool in each.mem)


@emulated
def test_claims_that_do_not_hold_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    far = {"bounds": {f"claims_{name}": {"bytes": 4000} for name in ("init", "run")}}
    monkeypatch.setattr(claims, "of_graph", lambda *_: far)
    monkeypatch.setattr(claims, "bound", lambda *_: Bound(10, ()))
    monkeypatch.setattr(claims, "named", lambda step, _: Varying(step.number, step.function.name, ()))
    found, _ = claims.broken(small(), 1, "cortex-m4", Options(target="cortex-m4"), count=1)
    ends = ["of stack, its bound is 4000"] * 2 + ["instructions, and is not named", "instructions, its bound is 10"]
    assert len(found) == len(ends) and all(map(str.endswith, found, ends))


def test_nothing_is_checked_without_an_emulator(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(claims, "missing", lambda _: ["qemu-system-arm"])
    monkeypatch.setattr("sys.argv", ["claims"])
    assert claims.main() == 0
    assert capsys.readouterr().out == "claims of evidence are not checked: qemu-system-arm not found\n"
