"""What makes a certificate of the stack wrong, one change each: tests/evidence/mutate.py tries them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Certificate = dict[str, Any]
Change = Callable[[Certificate, random.Random], bool]


def _on_the_way(found: Certificate) -> list[str]:
    """Functions that a bound depends on."""
    return [name for name in found["functions"] if name in found["bounds"]]


def other_stack_bound(found: Certificate, chance: random.Random) -> bool:
    bound = chance.choice([*found["bounds"].values()])
    bound["bytes"] = (bound["bytes"] or 0) + chance.choice([-4, -1, 1, 4])
    return True


def no_stack_bound(found: Certificate, chance: random.Random) -> bool:
    del found["bounds"][chance.choice([name for name in found["bounds"] if name.endswith(("_run", "_init"))])]
    return True


def drop_function(found: Certificate, chance: random.Random) -> bool:
    del found["functions"][chance.choice([*found["functions"]])]
    return True


def deeper_frame(found: Certificate, chance: random.Random) -> bool:
    functions = [found["functions"][name] for name in _on_the_way(found)]
    frame = chance.choice(functions)
    frame["bytes"] += 4096
    return True


def deeper_call(found: Certificate, chance: random.Random) -> bool:
    frame = chance.choice([frame for frame in found["functions"].values() if frame["calls"]])
    callee = chance.choice([*frame["calls"]])
    frame["calls"][callee] += frame["bytes"] + 4
    return True


def call_of_itself(found: Certificate, chance: random.Random) -> bool:
    name = chance.choice(_on_the_way(found))
    found["functions"][name]["calls"][name] = 0
    return True


def unknown_call(found: Certificate, chance: random.Random) -> bool:
    found["functions"][chance.choice(_on_the_way(found))]["calls"]["unheard_of"] = 0
    return True


OF_STACKS: tuple[Change, ...] = (
    other_stack_bound,
    no_stack_bound,
    drop_function,
    deeper_frame,
    deeper_call,
    call_of_itself,
    unknown_call,
)
