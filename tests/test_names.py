"""Operators and scalar functions that code names by text exist: a rule over one that does not would never fit."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import onnx
import pytest

from mccompile.expr.functions import FUNCTIONS
from mccompile.frontend import composed
from mccompile.ops.api import registry

TOP = Path(__file__).resolve().parent.parent
SOURCES = sorted(path for top in ("mccompile", "kernels_templates") for path in (TOP / top).rglob("*.py"))
OPERATORS = {name for _, name in registry()}
WRITTEN_OUT = {name for _, name in composed.names()}
ONNX = {schema.name for schema in onnx.defs.get_all_schemas()}
# The call by whose first text things are named: which names there are.
NAMED: dict[str, tuple[str, Callable[[str], bool]]] = {
    "apply": ("a scalar function", lambda name: name in FUNCTIONS),
    "ResultOf": ("operators of a pattern", lambda names: set(names.split()) <= OPERATORS),
    "body.op": ("an operator of a decomposition", lambda name: name in ONNX | OPERATORS | WRITTEN_OUT),
}


def unknown(source: str) -> Iterator[str]:
    if not any(f"{call}(" in source for call in NAMED):  # which is quicker to see than what is called
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            entry, name = NAMED.get(ast.unparse(node.func)), node.args[0].value
            if entry is not None and isinstance(name, str) and not entry[1](name):
                yield f"{node.lineno}: {entry[0]}, {name!r}"


def test_every_name_is_of_something() -> None:
    wrong = {path.relative_to(TOP).as_posix(): list(unknown(path.read_text(encoding="utf-8"))) for path in SOURCES}
    assert not {path: names for path, names in wrong.items() if names}


@pytest.mark.parametrize(
    "source", ['apply("maximum", x)', 'ResultOf("Negate", X)', 'ResultOf("Add Plus", X)', 'body.op("Ad")']
)
def test_an_unknown_name_is_seen(source: str) -> None:
    assert len(list(unknown(source))) == 1
