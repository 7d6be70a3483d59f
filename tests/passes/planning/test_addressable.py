"""What a target cannot address is refused, by the tensors that are too large."""

from __future__ import annotations

import pytest

from mccompile.base.errors import UnsupportedModel
from mccompile.driver import Options
from tests.small_models import compiled, model, node


def test_an_arena_beyond_32_bits_is_for_machines_with_more() -> None:
    wide = model("wide", [node("Add", "x x", "y")], [("x", [1 << 28, 2])], [("y", [1 << 28, 2])])
    with pytest.raises(UnsupportedModel) as refused:
        compiled(wide, Options(target="cortex-m4"))
    text = str(refused.value)
    assert "the arena of 2147483648 bytes cannot be addressed" in text
    assert "the largest tensors are x 2147483648 bytes" in text
    assert "cortex-m4 has addresses of 32 bits, an array has up to 2147483647 bytes" in text
    assert compiled(wide, Options(target="generic")).plan.arena_bytes == 1 << 31


def test_tensors_outside_the_arena_count() -> None:
    wide = model("wide", [node("Neg", "x", "y")], [("x", [1 << 29])], [("y", [1 << 29])])
    with pytest.raises(UnsupportedModel, match="tensor 'x' is too large"):
        compiled(wide, Options(target="rv32imc", external=("*",)))


def test_what_one_tensor_may_take_is_bounded_everywhere() -> None:
    wide = model("wide", [node("Add", "x x", "y")], [("x", [1 << 40])], [("y", [1 << 40])])
    with pytest.raises(UnsupportedModel, match=r"(?s)input 'x'.*4398046511104 bytes"):
        compiled(wide)
