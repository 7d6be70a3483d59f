"""Changes of certificates that know nothing of what these say."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import jsonschema
import pytest

from mccompile.evidence import check_schema
from mccompile.evidence.folder import SCHEMAS, _own, of_form
from mccompile.frontend.listed import nodes_of
from tests import small_models
from tests.evidence import blind
from tests.evidence.mutate import Certificate
from tests.thorough import some

# What no checker can know without the compiler, the machine code or the model's file: docs/safety.md lists it.
TRUSTED = {
    "trace": {".nodes.#.passes", ".nodes.#.passes.#", ".nodes.#.into", ".nodes.#.into.#", ".steps.#.nodes"},
    "memory": {
        # another true claim: memory that lives longer or shorter than it must, less alignment, wider bytes
        *(".buffers.#.life.#", ".buffers.#.align", ".buffers.#.over_read", ".buffers.#.bytes"),
        *(".program.#.call.arguments.#.low", ".program.#.call.arguments.#.high"),
        # what a kernel reads and may lie over
        *(".program.#.call.reads.#", ".program.#.call.reads.#.#", ".program.#.call.writes.#.#"),
        *(f".program.#.call.may_lie_over{end}" for end in ("", ".#", ".#.#")),
    },
    "ranges": set[str](),
}


@pytest.fixture(scope="module")
def subject() -> blind.Checked:
    made = small_models.mlp()
    return blind.Checked(small_models.compiled(made), [*nodes_of(made)], stack=False)


@some(1, "change", blind.CHANGES)
@pytest.mark.parametrize("name", TRUSTED)
def test_what_is_accepted_is_true_or_taken_on_trust(subject: blind.Checked, name: str, change: Any) -> None:
    assert subject.problems(subject.good) == []
    assert {*subject.accepted(name, change, 150, seed=1)} <= TRUSTED[name]


def test_folded_nodes_cannot_be_left_out(subject: blind.Checked) -> None:
    trace: Certificate = copy.deepcopy(subject.good["trace"])
    trace["nodes"].insert(0, trace["nodes"][0] | {"disposition": "folded", "by": "fold", "into": ["c"], "steps": []})
    for number, node in enumerate(trace["nodes"]):
        node["position"] = str(number)
    trace["nodes"].pop(0)
    assert "a node in front of node 1 is left out" in subject.problems(subject.good | {"trace": trace})[0]


def test_forms_are_those_of_json_schema(subject: blind.Checked) -> None:
    chance = random.Random(0)
    refused = 0
    for name in TRUSTED:
        schema = jsonschema.Draft202012Validator(json.loads(_own(f"schemas/{name}.schema.json")))
        for _ in range(150):
            bad = copy.deepcopy(subject.good[name])
            where, key, _ = chance.choice([*blind.slots(bad)])
            where[key] = chance.choice([None, True, -1, 1.5, "x", [], {}, [1], {"x": 1}])
            assert bool(of_form(name, bad)) == (not schema.is_valid(bad))
            refused += not schema.is_valid(bad)
    assert refused > 200


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_have_no_keywords_that_are_not_checked(name: str) -> None:
    schema = json.loads(_own(f"schemas/{name}"))

    def inner(part: Any) -> list[Any]:
        lists = [each for word in ("anyOf", "oneOf", "prefixItems") for each in part.get(word, ())]
        named = [each for word in ("properties", "$defs") for each in part.get(word, {}).values()]
        parts = [*lists, *named, *(part[word] for word in ("items", "additionalProperties") if word in part)]
        return [part, *(found for each in parts if isinstance(each, dict) for found in inner(each))]

    known = {*check_schema.SIMPLE, *check_schema.NOTES, "$ref", "anyOf", "oneOf", "properties", "prefixItems"}
    assert all(part.keys() <= known for part in inner(schema))
