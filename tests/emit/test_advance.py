"""A run for its states alone leaves what a whole run leaves, and computes nothing that only outputs need."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto

from mccompile.base.errors import WrongUse
from mccompile.driver import Options, compile
from mccompile.evidence.folder import checked, checked_trace
from mccompile.frontend.listed import nodes_of
from mccompile.importers.decoders.family import LLAMA_NAMES
from mccompile.plan.ir import Branch, Plan, Step, walk
from tests.importers.decoders.files import LLAMA, SIZES, folder, named
from tests.importers.decoders.reference import random_weights
from tests.passes.memory.test_state import STATES, compiled, model

HARNESS = Path(__file__).with_name("advance.c")


NAMES = [name for name in STATES if name != "old"]  # whose y is its state


@pytest.mark.parametrize(
    ("name", "prefer"), [*((name, "time") for name in NAMES), ("causal", "ram"), ("cache", "flash")]
)
def test_states_are_those_of_a_whole_run(name: str, prefer: str, tmp_path: Path) -> None:
    package = compiled(*STATES[name], advance=True, prefer=prefer)
    memory = checked(package)  # the C makes the calls of the plan in its order
    checked_trace(package, nodes_of(STATES[name][0]), memory)
    package.write(tmp_path / "out")
    sources = [HARNESS, *sorted(path for path in (tmp_path / "out").glob("*.c") if path.name != "main.c")]
    places = [f"-I{tmp_path / 'out'}", f"-I{tmp_path / 'out' / 'runtime'}"]
    subprocess.run(["cc", *places, *sources, "-o", tmp_path / "test", "-lm"], check=True)
    assert subprocess.run([tmp_path / "test"]).returncode == 0


def _guarded(plan: Plan) -> list[Step]:
    """The steps that a run for its states leaves out."""
    return [*walk(item for item in plan.items if isinstance(item, Branch) and item.condition is None)]


def _left_out(made: ModelProto, states: dict[str, str], **options: object) -> list[str]:
    plan = compiled(made, states, advance=True, **options).plan
    return [step.function.call.kind.name for step in _guarded(plan)]


def test_what_only_outputs_need_is_left_out() -> None:
    assert _left_out(*STATES["lstm"]) == []
    assert _left_out(*STATES["causal"])[-1].startswith("conv")
    assert len(_left_out(*STATES["cache"], without=frozenset({"fuse_attention"}))) == 3


def test_a_piece_of_a_prompt_has_no_logits(tmp_path: Path) -> None:
    path = folder(tmp_path / "llama", LLAMA, named(random_weights(SIZES, np.random.default_rng(1)), LLAMA_NAMES))
    plan = compile(path, Options(advance=True, dims={"past": (0, 20), "tokens": (1, 4)})).plan
    products = [step.macs for step in _guarded(plan) if step.function.call.kind.name == "gemm"]
    assert products[-1] == SIZES["vocabulary"] * SIZES["width"]
    assert len(products) == 1 + 5  # queries, what attention gives, gate, up and down of the last layer


def test_random_numbers_go_on_without_outputs() -> None:
    made = model(
        "(float[2,3] x, float[2,3] s) => (float[2,3] y, float[2,3] t)"
        "{ r = RandomNormalLike(x) y = Add(r, x) t = Add(s, x) }"
    )
    assert len(_left_out(made, {"t": "s"})) <= 1  # the sum with them, not they


def test_slices_are_all_computed() -> None:
    with pytest.raises(WrongUse, match="--slices"):
        Options(advance=True, slices=True)
