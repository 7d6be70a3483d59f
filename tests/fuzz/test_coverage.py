"""Nothing that can be compiled or asked for is left out of the fuzzer by accident."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from onnx import defs

from mccompile import option_table
from mccompile.driver import Options
from mccompile.frontend.contributed import contributed
from mccompile.frontend.supported import supported, title
from tests.fuzz import official, options
from tests.fuzz.builder import Builder
from tests.fuzz.operators.registry import EXEMPT, entries
from tests.hardware import example, session_here

TRIES = 60


def test_every_operator_is_in_some_choice() -> None:
    known = {*entries(), *official.OPERATORS, *official.examples(), *EXEMPT}
    assert [name for name in (*supported(), *with_a_body()) if name not in known] == []


def with_a_body() -> list[str]:
    """Operators that are compiled through what ONNX says they do."""
    schemas = defs.get_all_schemas()
    return [title(s.domain, s.name) for s in schemas if s.has_function or s.has_context_dependent_function]


def test_no_choice_is_of_an_operator_that_is_not_there() -> None:
    known = {*supported(), *with_a_body()}
    assert [name for name in (*entries(), *official.OPERATORS, *EXEMPT) if name not in known] == []


def test_every_option_is_drawn_or_has_a_reason() -> None:
    exempt = [option.name for option in option_table.options(Options) if option.entry.undrawn]
    assert sorted((*options.choices(), *exempt)) == sorted(field.name for field in fields(Options))


def _examples(name: str) -> tuple[str, ...]:
    """Graphs with an operator that ONNX does not define."""
    domain, _, op = name.rpartition("::")
    found = contributed().get((domain, op))
    return found.examples if found else ()


@pytest.mark.parametrize("name", sorted(entries()))
def test_an_operator_gets_into_graphs(name: str) -> None:
    """Its choice makes valid nodes."""
    entry = entries()[name]
    for seed in range(TRIES):
        if entry.opset > defs.onnx_opset_version():
            pytest.skip(f"the installed onnx has no opset {entry.opset}")
        g = Builder(np.random.default_rng(seed), max(21, entry.opset), {})
        entry.put(g)
        if any(node.op_type == entry.name for node in g.nodes):
            return
    for text in _examples(name):
        session_here(example(name.split("::")[0], text))
    pytest.fail(f"{name} was in none of {TRIES} graphs")
