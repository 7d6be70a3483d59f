"""Builds of the same C by other compilers and flags: which are tried, which must agree, and what is said of them."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from ml_dtypes import bfloat16

from mccompile import cli
from mccompile.base.errors import WrongUse
from mccompile.cli.checks import Check, Checked, CheckSettings, bit_equal
from mccompile.cli.told import schemas
from mccompile.cli.verdicts import lines_of_groups
from mccompile.driver import Options
from mccompile.measure import bitwise
from mccompile.measure.bitwise import BitComparison, BuildCommand, ComparedBuild, OutputDifference
from mccompile.measure.verdict import DEFAULT
from mccompile.targets import api
from mccompile.toolchain.tools import missing
from tests import small_models
from tests.measure.bits_table import NETWORKS, PAGE, TARGETS, letters, on_page
from tests.small_models import save

OFF, FAST = "-ffp-contract=off", "-ffp-contract=fast"


def test_every_level_language_and_contraction_is_tried_with_every_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bitwise, "missing", lambda names: [name for name in names if name == "clang"])
    found = [str(way) for way in bitwise.ways(api.load("generic"))]
    assert found[:2] == ["cc -O2 -std=c99", "gcc -O2 -std=c99"] and not any("clang" in way for way in found)
    assert {f"gcc {level} -std=c99" for level in ("-O0", "-O3", "-Os")} <= {*found}
    assert "tcc -O2 -std=gnu99" in found and "gcc -O2 -std=c99 -ffp-contract=fast" in found
    assert not any("tcc" in way and "contract" in way for way in found)
    own = [str(way) for way in bitwise.ways(api.load("cortex-m4"), ("-Os",))]
    assert own[0] == f"arm-none-eabi-gcc -Os -std=c99 {FAST}" and f"arm-none-eabi-gcc -Os -std=c99 {OFF}" in own[1:]


@pytest.mark.parametrize(
    ("way", "decided"),
    [
        (BuildCommand("gcc", ("-std=gnu99", "-O3", OFF)), True),
        (BuildCommand("gcc", ("-std=c99",)), True),
        (BuildCommand("gcc", ("-std=gnu99",)), False),
        (BuildCommand("gcc", ("-std=c99", OFF, FAST)), False),
        (BuildCommand("clang", ("-std=c99",)), False),
        (BuildCommand("tcc", ("-std=gnu99",)), True),
    ],
)
def test_bits_are_decided_where_nothing_is_contracted(way: BuildCommand, decided: bool) -> None:
    first = BuildCommand("cc", ("-std=c99", "-O2", OFF))
    assert bitwise.decided(first, way, fuses=True) == decided
    assert bitwise.decided(first, way, fuses=False)
    assert not bitwise.decided(BuildCommand("cc", (FAST,)), way, fuses=True)  # whatever the other one does


@pytest.mark.parametrize("name", ["native", "x86-64-v3", "x86-64-v4", "aarch64", "aarch64-fp16", "armv7a", "riscv64"])
def test_targets_that_could_contract_say_that_nothing_is(name: str) -> None:
    target = api.load(name)
    assert OFF in target.cflags and OFF in target.build.flags


def test_a_machine_that_fuses_is_known_by_its_macros() -> None:
    assert not bitwise.may_fuse(BuildCommand("gcc", ("-march=x86-64",)))
    assert bitwise.may_fuse(BuildCommand("gcc", ("-march=x86-64-v3",)))


def test_differences_are_counted_in_units_of_the_last_place() -> None:
    one = np.array([[1.0, -0.0, np.nan, np.inf, -1e-45]], np.float32)
    assert [*bitwise.differences([{"y": one}], [{"y": one.copy()}])] == []
    other = np.array([[np.nextafter(np.float32(1), np.float32(2)), 0.0, -np.nan, 1.0, 1e-45]], np.float32)
    assert [*bitwise.differences([{"y": one}], [{"y": other}])] == [OutputDifference("y", 5, 4, 2)]
    narrow = np.array([1.0, 2.0], bfloat16)
    assert [*bitwise.differences([{"y": narrow}], [{"y": narrow[::-1]}])] == [OutputDifference("y", 2, 2, 128)]
    whole = np.array([1, 2], np.int8)
    assert [*bitwise.differences([{"y": whole}], [{"y": whole + np.int8(1)}])] == [OutputDifference("y", 2, 2, 0)]
    text, fewer = np.array(["a", "b"], object), np.array(["a"], object)
    assert [*bitwise.differences([{"y": text}], [{"y": fewer}])] == [OutputDifference("y", 2, 2, 0)]


def test_digests_tell_zeros_apart_and_no_nan() -> None:
    def of(number: float) -> str:
        return bitwise.digest([{"y": np.float32(number)}])

    assert of(0.0) != of(-0.0) and of(np.nan) == of(-np.nan)


def test_other_bits_are_wrong_only_where_they_are_decided() -> None:
    way, apart = BuildCommand("gcc", ("-O3",)), (OutputDifference("y", 4, 1, 1),)
    assert BitComparison("generic", way, (ComparedBuild(way, False, apart), ComparedBuild(way, True, ())), "", 1).ok
    found = BitComparison("generic", way, (ComparedBuild(way, True, apart),), "", 1)
    assert not found.ok and "y: 1 of 4 elements, at most 1 ulp" in found.failure(Path("m.onnx")).problems[0].why


def test_targets_with_the_same_bits_are_grouped() -> None:
    how = CheckSettings(None, 0, 1, DEFAULT, None, None, False, bitwise=True)
    bits = {"generic": "1", "cortex-m4": "2", "cortex-m3": "1"}
    done = [(Check(Path("m"), Options(target=each), how), Checked(each, {}, bits=bits[each])) for each in bits]
    groups = bit_equal(done)
    assert groups == {"m": [["generic", "cortex-m3"], ["cortex-m4"]]} and bit_equal(done[:1]) == {}
    jsonschema.validate(
        {"schema": "mccompile/check/1", "ok": True, "checks": [], "bit_equal": groups}, schemas()["check"]
    )
    lines = [*lines_of_groups("m", groups["m"])]
    assert lines == ["bits   m: equal for generic, cortex-m3", "bits   m: cortex-m4 has its own"]


def test_builds_of_a_model_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(save(small_models.mlp(), tmp_path))
    cc = "gcc" if missing(["tcc"]) else "tcc"
    assert cli.run(["check", path, "--bitwise", "--runs", "1", "--cc", cc, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    jsonschema.validate(told, schemas()["check"])
    found = told["bitwise"]
    assert len(found["builds"]) >= 4 and all(build["equal"] for build in found["builds"] if build["decided"])
    assert any("-O0" in build["flags"] for build in found["builds"]) and found["compiler"] == cc
    assert cli.run(["check", path, "--bitwise", "--loss", "mse:out.put"]) == WrongUse.exit_code


def test_the_page_has_every_target_and_what_this_machine_gives() -> None:
    shown = on_page(PAGE.read_text(encoding="utf-8"))
    assert [*shown] == [*NETWORKS] and all([*each] == [*TARGETS] for each in shown.values())
    here = ["generic", *(["x86-64-v3"] if "avx2" in api.load("native").isas else [])]
    found = letters("conv", here)
    assert len({*found.values()}) == len({shown["conv"][target] for target in here})
