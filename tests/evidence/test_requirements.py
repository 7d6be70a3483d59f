"""Requirements have numbers, and tests that exist; the page is made from them.

python -m tests.evidence.test_requirements     write docs/requirements/index.md
"""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path

import jsonschema
import pytest

from mccompile.evidence import requirements
from mccompile.evidence.requirements import ABOUT, Requirement, cited
from mccompile.ops.api import registry

TOP = Path(__file__).resolve().parents[2]
PAGE = TOP / "docs" / "requirements" / "index.md"
ALL = [(op, each) for op, own in requirements.requirements().items() for each in own]


@cache
def names_of(path: str) -> tuple[set[str], set[str]]:
    """The tests of a file, and all of its texts, among which the labels of parameters are."""
    nodes = [*ast.walk(ast.parse((TOP / path).read_text(encoding="utf-8")))]
    tests = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    assigned = [target for node in nodes if isinstance(node, ast.Assign) for target in node.targets]
    tests |= {target.id for target in assigned if isinstance(target, ast.Name)}
    return tests, {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def is_there(test: str) -> bool:
    found = re.fullmatch(r"((?:tests|embedded)/(?:\w+/)*test_\w+\.py)::(test_\w+)(?:\[(\w+)\])?", test)
    if found is None or not (TOP / found[1]).is_file():
        return False
    tests, texts = names_of(found[1])
    return found[2] in tests and (found[3] is None or found[3] in texts)


@pytest.mark.parametrize(("op", "requirement"), ALL, ids=[each.id for _, each in ALL])
def test_a_requirement_names_its_operator_and_tests_that_exist(op: str, requirement: Requirement) -> None:
    assert op in {name for _, name in registry()} or op.startswith("QLinear")
    assert re.fullmatch(rf"{op.upper()}-[1-9]\d*", requirement.id) and requirement.about in ABOUT
    assert requirement.text.endswith(".") and requirement.tests
    assert [test for test in requirement.tests if not is_there(test)] == []


def test_tests_that_do_not_exist_are_noticed() -> None:
    assert is_there("tests/ops/test_special_values.py::test_special_values[relu]")
    assert not is_there("tests/ops/test_special_values.py::test_special_values[none]")
    assert not is_there("tests/ops/test_special_values.py::test_nothing") and not is_there("tests/ops/none.py::test_x")


def test_numbers_are_used_once_and_in_order() -> None:
    for own in requirements.requirements().values():
        numbers = [int(each.id.rpartition("-")[2]) for each in own]
        assert numbers == sorted({*numbers})


def test_requirements_that_others_refer_to_exist() -> None:
    known = {each.id for _, each in ALL}
    for _, each in ALL:
        assert {*re.findall(r"[A-Z]{3,}-\d+", each.text)} <= known


def test_the_page_is_made_from_them() -> None:
    assert PAGE.read_text(encoding="utf-8") == requirements.page()


def test_a_network_cites_those_of_its_operators() -> None:
    found = cited(["Relu", "Conv", "Relu", "Cosh"])
    assert [*found["operators"]] == ["Conv", "Relu"] and found["without"] == ["Cosh"]
    assert [each["id"] for each in found["operators"]["Relu"]] == ["RELU-1", "RELU-2", "RELU-3"]
    schema = json.loads((Path(requirements.__file__).parent / "schemas" / "requirements.schema.json").read_text())
    jsonschema.validate({"schema": "mccompile-requirements-1", **found}, schema)


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(requirements.page(), encoding="utf-8")
