"""limit_errors: which calls are asked to be more exact, and which are left alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from mccompile import cli
from mccompile.base.errors import WrongUse
from mccompile.base.summation_error import ANY, DIRECT, PLAIN, SHORT
from mccompile.driver import Options, compile
from mccompile.passes.program.limit_errors import limit_errors as chooser
from mccompile.passes.program.limit_errors.limit_errors import DOUBT, LIMIT, PrecisionOption
from mccompile.targets.api import Prefer
from tests.passes.program.limit_errors.networks import cancelling, of_text, plain
from tests.small_models import save
from tests.small_quantized import convolutions

FAST = Options(target="x86-64-v3", prefer=Prefer.TIME)
STRICT = Options(target="x86-64-v3", prefer=Prefer.TIME, float_error=1e-9)
LOOSE = Options(target="x86-64-v3", prefer=Prefer.TIME, float_error=1)


def levels(made: ModelProto, folder: Path, options: Options, facts: frozenset[str] | None = None) -> list[int]:
    """How exactly each call with products is asked to make them."""
    plan = compile(save(made, folder), options, facts).plan
    calls = [step.function.call for step in plan.steps()]
    found = [call.kind.rounding for call in calls if hasattr(call.kind, "rounding")]
    assert sum("as exact as" in fact for fact in plan.assumptions) == sum(level != ANY for level in found)
    return found


@pytest.mark.parametrize("op", ["Conv", "Gemm"])
def test_errors_that_grow_where_means_cancel_are_limited(op: str, tmp_path: Path) -> None:
    found = levels(cancelling(op, layers=4, spread=0.001), tmp_path, FAST)
    assert found[0] == ANY and max(found) >= SHORT


def test_errors_that_stay_small_are_not(tmp_path: Path) -> None:
    assert levels(plain(), tmp_path, FAST) == [ANY] * 3


@pytest.mark.parametrize("made", [plain(), cancelling("Conv"), cancelling("Gemm")], ids=["plain", "conv", "gemm"])
def test_a_limit_that_nothing_meets_makes_all_as_exact_as_can_be(made: ModelProto, tmp_path: Path) -> None:
    assert set(levels(made, tmp_path, STRICT)) <= {SHORT, DIRECT}


def test_it_leaves_winograd_for_sums_in_short_runs(tmp_path: Path) -> None:
    options = Options(target="x86-64-v3", prefer=Prefer.TIME, float_error=1e-9)
    kernels = {call.function.call.kernel for call in compile(save(plain(), tmp_path), options).plan.steps()}
    assert {id for id in kernels if id.startswith("conv/")} == {"conv/f32_nhwc_tile__vec"}


def test_a_limit_that_all_meet_changes_nothing(tmp_path: Path) -> None:
    assert levels(cancelling(), tmp_path, LOOSE) == [ANY] * 3


@pytest.mark.parametrize("seed", [1, 2])
def test_code_that_is_there_says_which_calls_are_exact(seed: int, tmp_path: Path) -> None:
    """Also for weights of which none would have to be."""
    facts = frozenset(compile(save(cancelling(), tmp_path), STRICT).plan.assumptions)
    before = levels(cancelling(), tmp_path, STRICT)
    assert levels(cancelling(spread=0.5, seed=seed), tmp_path, LOOSE, facts) == before


def test_a_blob_for_code_that_is_there_changes_nothing_else(tmp_path: Path) -> None:
    """Though none of the new weights lets errors grow."""
    out, new = tmp_path / "out", tmp_path / "new"
    new.mkdir()
    compile(save(cancelling(layers=4, spread=0.001), tmp_path), FAST).write(out)
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    assert b"short runs" in before["report.json"]
    assert cli.run(["blob", str(save(cancelling(layers=4, spread=0.5, seed=1), new)), "--for", str(out)]) == 0
    changed = {name for name, text in before.items() if (out / name).read_bytes() != text}
    assert changed == {"net.mcb", "net_weights.c", "report.json"}


def test_code_of_plain_calls_gets_no_exact_ones(tmp_path: Path) -> None:
    assert levels(cancelling(), tmp_path, STRICT, frozenset()) == [ANY] * 3


@pytest.mark.parametrize("options", [
    Options(target="x86-64-v3", prefer=Prefer.TIME, float_error=1e-9, updatable=True),
    Options(target="generic", prefer=Prefer.TIME, float_error=1e-9),
    Options(target="cortex-m4", float_error=1e-9),
], ids=["updatable", "generic", "cortex-m4"])  # fmt: skip
def test_networks_that_are_left_alone(options: Options, tmp_path: Path) -> None:
    """Weights that change, and targets without vectors."""
    assert levels(plain(), tmp_path, options) == [ANY] * 3


def test_products_in_16_bits_are_cut_anyway(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).standard_normal((16, 16, 3, 3)).astype(np.float16)
    made = of_text("(float16[1,16,8,8] x) => (float16[1,16,6,6] y) { y = Conv(x, w) }", w=weights)
    options = Options(target="aarch64-fp16", prefer=Prefer.TIME, float_error=1e-9)
    assert levels(made, tmp_path, options) == [ANY]


def test_integers_have_no_such_errors(tmp_path: Path) -> None:
    assert set(levels(convolutions(8, [(8, 3, 1), (8, 3, 1)]), tmp_path, STRICT)) == {ANY}


@pytest.mark.parametrize("fraction", [0.0, -1.0, 2.0, float("nan")])
def test_fractions_that_are_none_are_refused(fraction: float) -> None:
    with pytest.raises(WrongUse, match=r"--float-error \S+ is not above 0 and at most 1"):
        Options(float_error=fraction)


def chosen(
    ways: Sequence[list[PrecisionOption]], monkeypatch: pytest.MonkeyPatch, float_error: float | None = None
) -> list[int]:
    """What calls are asked that can be made in these ways, by number."""
    calls: list[Any] = [SimpleNamespace(ways=each) for each in ways]
    monkeypatch.setattr(chooser, "steps", lambda program: [SimpleNamespace(call=call) for call in calls])
    monkeypatch.setattr(
        chooser, "_ways", lambda step, _, levels: [way for way in step.call.ways if way.asked in levels]
    )
    program: Any = SimpleNamespace()
    context: Any = SimpleNamespace(float_error=float_error)
    found = chooser._chosen(program, context, calls)
    return [found.get(number, ANY) for number in range(len(ways))]


DEAR = [PrecisionOption(ANY, 1.0, 10.0), PrecisionOption(SHORT, 0.1, 60.0)]
CHEAP = [PrecisionOption(ANY, 1.0, 10.0), PrecisionOption(SHORT, 0.1, 11.0)]


def test_the_call_comes_first_that_takes_least(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen([DEAR, CHEAP, DEAR], monkeypatch, float_error=1.2) == [ANY, SHORT, ANY]


def test_what_is_asked_for_is_done_at_any_price(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen([DEAR, CHEAP], monkeypatch, float_error=0.5) == [SHORT, SHORT]


def test_unasked_it_has_to_be_worth_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen([DEAR, CHEAP], monkeypatch) == [ANY, SHORT]


@pytest.mark.parametrize(("error", "level"), [(DOUBT / 1.1, ANY), (DOUBT * 1.1, SHORT)])
def test_unasked_estimates_are_doubted(error: float, level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(
        [[PrecisionOption(ANY, (error * LIMIT) ** 2, 10.0), PrecisionOption(SHORT, 0.0, 10.1)]], monkeypatch
    ) == [level]


def test_what_is_asked_for_is_done_without_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = [PrecisionOption(ANY, (2 * LIMIT) ** 2, 10.0), PrecisionOption(SHORT, 0.0, 10.1)]
    assert chosen([ways], monkeypatch, float_error=LIMIT) == [SHORT]


def test_a_way_that_is_worth_its_time_is_found_behind_one_that_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = [PrecisionOption(ANY, 1.0, 10.0), PrecisionOption(PLAIN, 0.9, 18.0), PrecisionOption(DIRECT, 0.1, 18.5)]
    assert chosen([ways], monkeypatch) == [DIRECT]


def test_ways_that_take_no_time_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    faster = [PrecisionOption(ANY, 1.0, 10.0), PrecisionOption(SHORT, 0.9, 10.0)]
    assert chosen([faster, CHEAP], monkeypatch) == [SHORT, SHORT]


def test_calls_that_no_kernel_takes_are_no_hindrance(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen([[], CHEAP], monkeypatch) == [ANY, SHORT]
