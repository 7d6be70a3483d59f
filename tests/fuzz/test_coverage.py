"""Nothing that can be compiled or asked for is left out of the fuzzer by accident."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from mccompile import option_table
from mccompile.driver import Options
from mccompile.frontend.contributed import contributed
from mccompile.frontend.supported import supported, title
from tests.fuzz import official, options
from tests.fuzz.builder import Builder
from tests.fuzz.operators.registry import EXEMPT, entries

TRIES = 60


def test_every_operator_is_in_some_choice() -> None:
    examples = {title(*key) for key in contributed()}  # tests/frontend/test_contributed.py runs them
    known = {*entries(), *official.OPERATORS, *EXEMPT, *examples}
    assert [name for name in supported() if name not in known] == []


def test_no_choice_is_of_an_operator_that_is_not_there() -> None:
    assert [name for name in (*entries(), *official.OPERATORS, *EXEMPT) if name not in supported()] == []


def test_every_option_is_drawn_or_has_a_reason() -> None:
    exempt = [option.name for option in option_table.options(Options) if option.entry.undrawn]
    assert sorted((*options.choices(), *exempt)) == sorted(field.name for field in fields(Options))


@pytest.mark.parametrize("name", sorted(entries()))
def test_an_operator_gets_into_graphs(name: str) -> None:
    """Its choice makes valid nodes."""
    entry = entries()[name]
    for seed in range(TRIES):
        g = Builder(np.random.default_rng(seed), max(21, entry.opset), {})
        entry.put(g)
        if any(node.op_type == entry.name for node in g.nodes):
            return
    pytest.fail(f"{name} was in none of {TRIES} graphs")
