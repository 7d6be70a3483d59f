"""What makes a certificate of integers wrong, one change each: tests/evidence/mutate.py tries them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Certificate = dict[str, Any]
Change = Callable[[Certificate, random.Random], bool]


def _pick(chance: random.Random, items: list[Any]) -> Any | None:
    return chance.choice(items) if items else None


def _nodes(found: Certificate) -> list[dict[str, Any]]:
    return [node for step in found["steps"] for node in step["nodes"]]


def _moved(item: dict[str, Any] | None, chance: random.Random) -> bool:
    if item is None:
        return False
    end = chance.randrange(2)
    item["range"] = [*item["range"]]
    item["range"][end] += chance.choice([-(1 << 20), -1, 1, 1 << 20])
    return True


def other_operand_range(found: Certificate, chance: random.Random) -> bool:
    """Of those that come from a type or from the blob."""
    operands = [o for step in found["steps"] for o in step["operands"] if o["range"] and o["from"] != "packed"]
    return _moved(_pick(chance, operands), chance)


def other_result_range(found: Certificate, chance: random.Random) -> bool:
    return _moved(_pick(chance, [node for node in _nodes(found) if node["range"]]), chance)


def other_sum_range(found: Certificate, chance: random.Random) -> bool:
    return _moved(_pick(chance, [step["sum"] for step in found["steps"] if step["sum"]]), chance)


def other_products(found: Certificate, chance: random.Random) -> bool:
    total = _pick(chance, [step["sum"] for step in found["steps"] if step["sum"]])
    if total is not None:
        total["products"] = max(0, total["products"] + chance.choice([-1, 1, 1000]))
    return total is not None


def smaller_partial_sum(found: Certificate, chance: random.Random) -> bool:
    total = _pick(chance, [step["sum"] for step in found["steps"] if step["sum"]])
    if total is not None:
        total["any_order"] -= chance.choice([1, total["any_order"] // 2 + 1])
    return total is not None


def turn_exact(found: Certificate, chance: random.Random) -> bool:
    items = [item for item in (*_nodes(found), *(step["sum"] for step in found["steps"] if step["sum"]))]
    item = _pick(chance, items)
    if item is not None:
        item["exact"] = not item["exact"]
    return item is not None


def other_operation(found: Certificate, chance: random.Random) -> bool:
    node = _pick(chance, [n for n in _nodes(found) if n["exact"] is True and n["op"] != "shift_left"])
    if node is not None:
        node["op"] = "shift_left"
    return node is not None


def other_literal(found: Certificate, chance: random.Random) -> bool:
    node = _pick(chance, [n for n in _nodes(found) if n["op"] == "literal" and n["range"]])
    if node is not None:
        node["value"] += 64
    return node is not None


def later_argument(found: Certificate, chance: random.Random) -> bool:
    places = [
        (step["nodes"], n) for step in found["steps"] for n, node in enumerate(step["nodes"]) if node["arguments"]
    ]
    place = _pick(chance, places)
    if place is not None:
        nodes, number = place
        nodes[number]["arguments"][0] = number + chance.choice([0, 1])
    return place is not None


def elsewhere_in_the_blob(found: Certificate, chance: random.Random) -> bool:
    operand = _pick(chance, [o for step in found["steps"] for o in step["operands"] if o["from"] == "blob"])
    if operand is not None:
        operand[chance.choice(["low", "high"])] += chance.choice([-4, 4])
    return operand is not None


def from_elsewhere(found: Certificate, chance: random.Random) -> bool:
    operand = _pick(chance, [o for step in found["steps"] for o in step["operands"] if o["from"] == "blob"])
    if operand is not None:
        operand["from"] = chance.choice(["type", "nowhere"])
        operand["range"][0] += 1
    return operand is not None


def other_kind(found: Certificate, chance: random.Random) -> bool:
    step = _pick(chance, found["steps"])
    if step is not None:
        step["kind"] = "gemm" if step["kind"] == "map" else "map"
    return step is not None


def fewer_factors(found: Certificate, chance: random.Random) -> bool:
    """A zero point that the sum does not count."""
    step = _pick(chance, [step for step in found["steps"] if step["kind"] != "map" and step["fixed"] > 2])
    if step is not None:
        step["fixed"] -= 1
    return step is not None


def drop_operand(found: Certificate, chance: random.Random) -> bool:
    step = _pick(chance, [step for step in found["steps"] if step["operands"]])
    if step is not None:
        step["operands"].pop(chance.randrange(len(step["operands"])))
    return step is not None


def drop_step(found: Certificate, chance: random.Random) -> bool:
    if found["steps"]:
        found["steps"].pop(chance.randrange(len(found["steps"])))
        return True
    return False


def integers_nowhere(found: Certificate, chance: random.Random) -> bool:
    """A step that says to have none."""
    if found["steps"]:
        found["not_integer"].append(chance.choice(found["steps"])["step"])
        return True
    return False


def other_function(found: Certificate, chance: random.Random) -> bool:
    step = _pick(chance, found["steps"])
    if step is not None:
        step["function"] += "x"
    return step is not None


OF_RANGES: tuple[Change, ...] = (
    other_operand_range,
    other_result_range,
    other_sum_range,
    other_products,
    smaller_partial_sum,
    turn_exact,
    other_operation,
    other_literal,
    later_argument,
    elsewhere_in_the_blob,
    from_elsewhere,
    other_kind,
    fewer_factors,
    drop_operand,
    drop_step,
    integers_nowhere,
    other_function,
)
