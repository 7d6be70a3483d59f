"""Plays a memory plan with an owner for every byte: `python check_owners.py FOLDER`. Needs Python 3.10, nothing else.

FOLDER/memory.json is accepted if nobody reads a byte that somebody else has overwritten, from the inputs to what is
read after the run and kept for the next one: branches both ways, loops until places have changed both ways. Where a
result is laid over an operand its kernel allows it; every access is made while its buffer lives.
Taken on trust: which bytes a kernel reads and writes, over which operands its result may lie, which buffers are parts
of others, and in regions of rows the order of the rows (`over`).
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Iterator
from math import gcd
from pathlib import Path
from typing import Any

NOBODY = 0
Item = dict[str, Any]
View = Any  # [buffer, first byte, [[pieces, distance], ...], bytes of a piece]; None: in no arena


def check(certificate: dict[str, Any]) -> list[str]:
    """All problems."""
    try:
        player = Player(certificate)
        player.run()
        return player.problems
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return [f"the certificate is malformed: {type(error).__name__}: {error}"]


class Player:
    def __init__(self, certificate: dict[str, Any]) -> None:
        self.c = certificate
        self.problems: list[str] = []
        self.time = 0
        self.buffers: list[Item] = certificate["buffers"]
        self.moved: dict[int, tuple[str, int]] = {}  # base and begin of what loops swap
        shifts = [b["in"][1] for b in self.buffers if b["in"]]
        sizes = [n for b in self.buffers for n in (b["begin"], b["bytes"])]
        self.unit = gcd(16, *sizes, *shifts, *numbers(certificate))  # bytes that always go together
        self.memory = {
            arena["base"]: array("I", [NOBODY]) * (-(-arena["bytes"] // self.unit)) for arena in certificate["arenas"]
        }

        if any(b["in"] is not None and not 0 <= b["in"][0] < n for n, b in enumerate(self.buffers)):
            raise ValueError("a buffer lies in one that comes behind it")

    def fail(self, text: str) -> None:
        if len(self.problems) < 20:
            self.problems.append(text)

    def owner(self, number: int) -> int:
        while self.buffers[number]["in"] is not None and self.buffers[number]["part"]:
            number = self.buffers[number]["in"][0]
        return number + 1

    def place(self, number: int) -> tuple[str, int]:
        shift, start = 0, number
        while number not in self.moved and self.buffers[number]["in"] is not None:
            shift += self.buffers[number]["in"][1]
            number = self.buffers[number]["in"][0]
        if number in self.moved:
            return self.moved[number][0], self.moved[number][1] + shift
        return self.buffers[start]["base"], self.buffers[start]["begin"]

    def pieces(self, view: View, what: str) -> Iterator[tuple[array[int], int, int]]:
        """Where the owners of the bytes of an access stand."""
        if view is None or view[3] == 0:
            return
        number, first, axes, width = view
        b = self.buffers[number]
        last = first + width + sum((count - 1) * stride for count, stride in axes)
        if not 0 <= first < last <= b["bytes"] or any(n < 1 or s < 1 for n, s in axes):
            self.fail(f"{what} leaves {b['name']}")
            return
        if b["life"] is None or not b["life"][0] <= self.time < b["life"][1]:
            self.fail(f"{what} uses {b['name']} at {self.time}, outside of its life")
        base, begin = self.place(number)
        starts = [begin + first]
        for count, stride in axes:
            starts = [start + n * stride for start in starts for n in range(count)]
        tags, unit = self.memory[base], self.unit
        for start in starts:
            yield tags, start // unit, -(-(start + width) // unit)

    def holds(self, view: View, what: str) -> bool:
        if view is None:
            return True
        me = self.owner(view[0])
        one: dict[int, array[int]] = {}
        for tags, begin, end in self.pieces(view, what):
            want = one.setdefault(end - begin, array("I", [me]) * (end - begin))
            if tags[begin:end] != want:
                return False
        return True

    def read(self, view: View, what: str, how: str) -> None:
        if not self.holds(view, what):
            self.fail(f"{what} {how} {self.buffers[view[0]]['name']}, which is overwritten")

    def write(self, view: View, what: str) -> None:
        if view is not None:
            me = self.owner(view[0])
            one: dict[int, array[int]] = {}
            for tags, begin, end in self.pieces(view, what):
                tags[begin:end] = one.setdefault(end - begin, array("I", [me]) * (end - begin))

    # -- the program

    def run(self) -> None:
        c = self.c
        for view in c["inputs"]:
            self.write(view, "an input")
        for view in c["inputs"]:
            self.read(view, "a run", "finds")
        self.body(c["program"])
        self.time += 1
        for state in c["states"]:
            self.read(state["after"], "a state", "keeps")
        for brought in (True, False):
            for state in c["states"]:
                self.keep(state, brought)
        for view in c["outputs"]:
            self.read(view, "an output", "is read from")
        for view in c["kept_inputs"]:
            self.read(view, "an input", "keeps")

    def keep(self, state: Item, brought: bool) -> None:
        """A state is brought to its place, where the next run finds it; without `after` from the blob."""
        before, after = state["before"], state["after"] or state["before"]
        me = self.owner(after[0])
        (base, begin), (other, first) = self.place(before[0]), self.place(after[0])
        brought = brought and (state["after"] is None or (base, begin) != (other, first + after[1]))
        if after[3] == 0:
            return
        for tags, begin, end in self.pieces(before, "a state"):
            if brought:
                tags[begin:end] = array("I", [me]) * (end - begin)
            elif tags[begin:end] != array("I", [me]) * (end - begin):
                self.fail("a state is overwritten before the next run")

    def body(self, items: list[Item]) -> None:
        for item in items:
            self.time += 1
            ((kind, inner),) = item.items()
            getattr(self, "do_" + kind)(inner)

    def do_stop(self, status: str) -> None:
        pass

    def do_measure(self, view: View) -> None:
        self.read(view, "a size", "reads")

    def do_call(self, call: Item) -> None:
        what = f"step {call['step']} ({call['function']})"
        for view in call["reads"]:
            self.read(view, what, "reads")
        for view in call["workspace"]:
            self.write(view, what)
            for other in call["reads"]:
                self.read(other, what, "has its workspace over")
        reach = {(result, operand): most for result, operand, most in call["may_lie_over"]}
        for result, out in enumerate(call["writes"]):
            near = [n for n, view in enumerate(call["reads"]) if view and self.holds(view, what)]
            self.write(out, what)
            for n in near:
                view = call["reads"][n]
                if not self.holds(view, what) and self.owner(view[0]) != self.owner(out[0]):
                    before = self.place(view[0])[1] + view[1] - self.place(out[0])[1] - out[1]
                    if not 0 <= before <= reach.get((result, n), -1):
                        self.fail(f"{what} writes over operand {n}, which its kernel does not allow")
        for view in (*call["writes"], *call["workspace"]):
            self.read(view, what, "writes twice")

    def do_rows(self, region: Item) -> None:
        calls = region["calls"]
        what, last = f"rows of step {calls[-1]['step']}", calls[-1]
        made = {view[0] for call in calls for view in call["writes"] if view}
        outside = [view for call in calls for view in call["reads"] if view and view[0] not in made]
        for view in outside:
            self.read(view, what, "reads")
        inside = [view for call in calls[:-1] for view in call["writes"] if view]
        for view in (*inside, *(view for call in calls for view in call["workspace"])):
            self.write(view, what)
        for view in outside:
            self.read(view, what, "has its rows over")
        kept = [*inside, *(view for view in outside if view[0] not in region["over"])]
        if region["at_end"]:
            used = {view[0] for view in last["reads"] if view}
            kept = [view for view in inside if view[0] in used]
        for view in last["writes"]:
            self.write(view, what)
        for view in kept:
            if view[0] not in region["shared"]:
                self.read(view, what, "has its result over")

    def do_if(self, region: Item) -> None:
        self.read(region["condition"], "a condition", "reads")
        before = {base: tags[:] for base, tags in self.memory.items()}
        self.body(region["then"])
        after, self.memory = self.memory, before
        self.body(region["else"])
        stops = [bool(items) and "stop" in items[-1] for items in (region["then"], region["else"])]
        if stops[1]:
            self.memory = after
        elif not stops[0]:
            for base, tags in self.memory.items():
                merged = (a if a == b else NOBODY for a, b in zip(tags, after[base], strict=True))
                self.memory[base] = array("I", merged)

    def do_loop(self, loop: Item) -> None:
        for view in loop["starts"]:
            self.read(view, "a loop", "starts with")
        outside, begun = dict(self.moved), self.time
        for now, other, _ in loop["carries"]:
            self.moved.update({n: self.place(n) for n in (now, other)})
        for _ in range(loop["played"]):
            self.time = begun
            self.read(loop["condition"], "a loop", "goes on by")
            self.body(loop["body"])
            for (now, other, _), whole in zip(loop["carries"], loop["wholes"], strict=True):
                self.read(whole[1], "a loop", "hands on")
                for tags, begin, end in self.pieces(whole[1], "a loop"):
                    tags[begin:end] = array("I", [self.owner(now)]) * (end - begin)
                self.moved[now], self.moved[other] = self.moved[other], self.moved[now]
        self.time = begun + count(loop["body"])
        for whole in loop["wholes"]:
            self.read(whole[0], "a loop", "ends with")
        self.moved, now, self.time = outside, self.time, begun
        for whole in loop["wholes"]:
            self.write(whole[2], "a loop")
        self.time = now


def count(items: list[Item]) -> int:
    """How many moments items take."""
    inner = [body for item in items for region in item.values() if isinstance(region, dict) for body in bodies(region)]
    return len(items) + sum(map(count, inner))


def bodies(region: Item) -> list[list[Item]]:
    return [region[name] for name in ("then", "else", "body") if name in region]


def numbers(certificate: Item) -> list[int]:
    """All numbers of all accesses."""
    found: list[int] = []
    left: list[Any] = [certificate]
    while left:
        item = left.pop()
        if isinstance(item, list) and len(item) == 4 and isinstance(item[2], list) and isinstance(item[3], int):
            found += [item[1], item[3], *(stride for _, stride in item[2])]
        elif isinstance(item, (list, dict)):
            left += item.values() if isinstance(item, dict) else item
    return found


def main(folder: str) -> int:
    certificate = json.loads(Path(folder, "memory.json").read_text(encoding="utf-8"))
    problems = check(certificate)
    for problem in problems or [f"{len(certificate['buffers'])} buffers: accepted"]:
        print("owners: " + problem)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
