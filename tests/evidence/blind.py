"""Changes that know nothing of what a certificate says: a number that is one more or less, two entries that change
places, one that is removed. `python -m tests.evidence.blind model.onnx --count 1000` counts those that every checker
accepts, by where they are: such places may hold another true claim, or one that is taken on trust (docs/safety.md)."""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mccompile.driver import Options, compile
from mccompile.emit.package import Package
from mccompile.evidence import check_ranges, check_stack, check_trace
from mccompile.evidence.folder import checked_ranges, of_form
from mccompile.evidence.stack import stack_certificate
from mccompile.frontend.listed import Listed, listed
from mccompile.targets.api import load

from .mutate import certificate, problems, trace_of

Certificates = dict[str, Any]
Slot = tuple[Any, Any, str]  # what contains it, its key there, and where that is, whatever the number of an entry


def slots(tree: Any, where: str = "") -> Iterator[Slot]:
    for key, value in [*(tree.items() if isinstance(tree, dict) else enumerate(tree))]:
        place = f"{where}.{'#' if isinstance(key, int) else key}"
        yield tree, key, place
        if isinstance(value, (dict, list)):
            yield from slots(value, place)


def by_one(tree: Any, chance: random.Random) -> str:
    found = [
        slot for slot in slots(tree) if isinstance(slot[0][slot[1]], int) and not isinstance(slot[0][slot[1]], bool)
    ]
    if not found:
        return ""
    inside, key, where = chance.choice(found)
    inside[key] += chance.choice([-1, 1])
    return where


def swapped(tree: Any, chance: random.Random) -> str:
    found = []
    for inside, key, where in slots(tree):
        items = inside[key]
        keys = [*items] if isinstance(items, dict) else [*range(len(items))] if isinstance(items, list) else []
        if any(items[each] != items[keys[0]] for each in keys):
            found.append((items, keys, where))
    if not found:
        return ""
    items, keys, where = chance.choice(found)
    first = chance.choice(keys)
    second = chance.choice([key for key in keys if items[key] != items[first]])
    items[first], items[second] = items[second], items[first]
    return where


def removed(tree: Any, chance: random.Random) -> str:
    inside, key, where = chance.choice([*slots(tree)])
    del inside[key]
    return where


CHANGES: tuple[Callable[[Any, random.Random], str], ...] = (by_one, swapped, removed)


class Checked:
    """The certificates of a package, and what all checkers say of them."""

    def __init__(self, package: Package, nodes: list[Listed], stack: bool = True) -> None:
        self.package, (memory, self.code) = package, certificate(package)
        self.good: Certificates = {"memory": memory, "trace": trace_of(package, nodes)}
        self.good["ranges"] = checked_ranges(package, memory)
        frames = stack_certificate(package, load(package.plan.target)) if stack else ""
        if not isinstance(frames, str):
            self.good["stack"] = json.loads(json.dumps(frames))

    def problems(self, found: Certificates) -> list[str]:
        if forms := [problem for name, each in found.items() for problem in of_form(name, each)]:
            return forms
        memory, files = found["memory"], self.package.files
        return [
            *problems(memory, self.code),
            *check_trace.check(found["trace"], memory, files),
            *check_ranges.check(found["ranges"], memory, files[f"{self.package.plan.prefix}.mcb"]),
            *(check_stack.check(found["stack"], memory, self.code[1], {}) if "stack" in found else ()),
        ]

    def accepted(self, name: str, change: Callable[[Any, random.Random], str], count: int, seed: int) -> Counter[str]:
        """Where changes of one certificate were made that no checker minds."""
        chance, found = random.Random(seed), Counter[str]()
        for _ in range(count):
            bad = copy.deepcopy(self.good[name])
            where = change(bad, chance)
            if where and not self.problems(self.good | {name: bad}):
                found[where] += 1
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--target", default="generic")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for model in arguments.models:
        subject = Checked(compile(model, Options(target=arguments.target)), listed(model))
        for name in subject.good:
            for change in CHANGES:
                found = subject.accepted(name, change, arguments.count, arguments.seed)
                print(f"{model}: {name}, {change.__name__}: {found.total()} of {arguments.count} accepted", flush=True)
                for where, times in found.most_common():
                    print(f"    {times} {where}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
