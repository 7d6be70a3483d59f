"""Checks that the C passes what memory.json says: `python check_calls.py FOLDER`. Needs Python 3.10 and nothing else.

Every call of a step is found in the C of FOLDER/code, and no other; its arguments are the addresses of the certificate,
as text, and as numbers where they do not count with a loop. Arenas, weights and tensors of the program are as large
as init and the header ask for, arenas as aligned.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Left = dict[str, list[tuple[int, list[str]]]]  # calls of each function that no step has been found for, and where


def check(certificate: dict[str, Any], code: str, header: str) -> list[str]:
    """All problems."""
    try:
        return [*calls_of(certificate, code), *rooms_of(certificate, code, header)]
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return [f"the certificate is malformed: {type(error).__name__}: {error}"]


def calls_of(certificate: dict[str, Any], code: str) -> list[str]:
    """Whether the C passes what the certificate says, call by call."""
    problems: list[str] = []
    enum = {name: int(value) for name, value in re.findall(r"^    (\w+) = (\d+),? /\*", code, re.M)}
    bare = re.sub(r"/\*.*?\*/", lambda found: " " * len(found[0]), code, flags=re.S)
    items = [*items_in(certificate["program"])]
    left = {
        name: [(m.start(), passed(bare, m.end())) for m in re.finditer(rf"(?<!\w){re.escape(name)}\(", bare)]
        for name in {call["function"] for calls in items for call in calls}
    }
    last = -1
    for calls in items:
        places = [place for call in calls for place in places_of(call, bare, left, problems)]
        for call in calls if len(calls) > 1 else ():  # a stage of rows is called wherever it is pulled
            left[call["function"]] = [found for found in left[call["function"]] if not is_call(call, found[1])]
        asked = list(re.finditer(rf"(?<!\w)rows_of_{calls[-1]['step']}\(m, made", bare))
        if len(calls) > 1 and asked:  # its stages are functions in front of the run, which calls the last of them
            places = [asked[-1].start()]
        if places and min(places) < last:
            problems.append(f"step {calls[0]['step']} is called before the one before it")
        last = max([last, *places])
        problems += [p for call in calls for a in call["arguments"] if a["c"] for p in differs(call, a, enum)]
    problems += [
        f"the C calls {name}({', '.join(call)}) once more" for name, there in left.items() for _, call in there
    ]
    return problems


def places_of(call: dict[str, Any], code: str, left: Left, problems: list[str]) -> list[int]:
    """Where a call is made; pieces that workers share stand in functions in front of the run, which names these."""
    there = left[call["function"]]
    places: list[int] = []
    for _ in range(max(1, call["phases"])):
        fits = next((found for found in there if is_call(call, found[1])), None)
        if fits is None:
            wanted = ", ".join(a["c"] for a in call["arguments"] if a["c"] is not None)
            problems.append(f"step {call['step']}: the C has no {call['function']}({wanted})")
            return places
        there.remove(fits)
        if call["phases"]:
            piece = re.findall(r"void (piece_of_\d+)\(void", code[: fits[0]])[-1]
            places.append(code.index(f"share(m, {piece},"))
        else:
            places.append(fits[0])
    return places


def is_call(call: dict[str, Any], arguments: list[str]) -> bool:
    wanted = [a["c"] for a in call["arguments"] if a["c"] is not None]
    return arguments[: len(wanted)] == wanted


def differs(call: dict[str, Any], argument: dict[str, Any], enum: dict[str, int]) -> list[str]:
    """Whether the text of an argument is the number that it should be."""
    text = argument["c"]
    macro = re.match(r"(A\w*|W|X|P)\((.*)\)$", text)
    if macro is None or argument["at"] is None:
        return []
    terms = macro[2].rsplit(",", 1)[1].replace(" - ", " + -").split(" + ")
    try:
        at = sum(enum[term.strip()] if term.strip() in enum else int(term) for term in terms)
    except ValueError:
        return [f"step {call['step']}: {text} has no number"]
    base = {"A": "arena", "W": "blob"}.get(macro[1]) or macro[2].rsplit(",", 2)[1].strip().removeprefix("m->")
    base = "arena_" + macro[1][1:].lower().lstrip("_") if len(macro[1]) > 1 else base
    if at != argument["at"] or base.lower() != argument["base"].lower():
        return [f"step {call['step']}: {text} is {base} {at}, not {argument['base']} {argument['at']}"]
    return []


def rooms_of(certificate: dict[str, Any], code: str, header: str) -> Iterator[str]:
    """Whether the program is asked for the memory that the certificate has."""
    prefix, rooms = re.escape(certificate["prefix"]), certificate["rooms"]

    def asked(pattern: str, text: str) -> list[int]:
        return [int(found) for found in re.findall(pattern, text, re.M | re.I)]

    for arena in certificate["arenas"]:
        base = re.escape(arena["base"])
        if asked(rf"mcc_check_arena\({base}, {base}_bytes, (\d+)u \+", code) != [arena["bytes"]]:
            yield f"init does not ask for {arena['bytes']} bytes of {base}"
        if asked(rf"^#define {prefix}_{base}_ALIGN (\d+)u", header) != [arena["align"]]:
            yield f"{base} is not aligned by {arena['align']} in the header"
    if asked(r"\bidentity,\s+(\d+)u,", code) != [rooms["blob"]]:
        yield f"init does not ask for {rooms['blob']} bytes of weights"
    if sum(asked(r"^    uint64_t streams\[(\d+)\];", header)) * 8 != rooms["streams"]:
        yield f"the header has other than {rooms['streams']} bytes of random numbers"
    for base, room in rooms.items():
        of = rf"^#define {prefix}_{base}"
        size = asked(rf"{of}_ROOM (\d+)u", header) or asked(rf"{of}_BYTES (\d+)u", header)
        if base.startswith(("input_", "output_")) and size != [max(room, 1)]:  # an array of C has an element
            yield f"{base} has other than {room} bytes in the header"
    outputs = re.findall(rf"^#define {prefix}_output_(\w+)_BYTES (\d+)u", header, re.M | re.I)
    for view, (name, told) in zip(certificate["outputs"], outputs, strict=True):
        free = re.search(rf"^void {prefix}_output_{name}_shape\(", header, re.M | re.I)
        read = int(told) if view is None else view[3] + sum((count - 1) * stride for count, stride in view[2])
        if read > int(told) or (read < int(told) and not free):  # the header has a bound where sizes are free
            yield f"an output of {told} bytes is read in part"


def items_in(items: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Calls in their order; those of a region of rows, which has an order of its own, together."""
    for item in items:
        ((kind, inner),) = item.items()
        if kind in ("call", "rows"):
            yield [inner] if kind == "call" else inner["calls"]
        for name in {"if": ("then", "else"), "loop": ("body",)}.get(kind, ()):
            yield from items_in(inner[name])


def passed(code: str, at: int) -> list[str]:
    """The arguments of a call, from behind its bracket."""
    depth, items, begin = 1, [], at
    while depth:
        letter = code[at]
        depth += (letter in "([{") - (letter in ")]}")
        if (letter == "," and depth == 1) or depth == 0:
            items.append(re.sub(r" \+ piece \* \d+$", "", " ".join(code[begin:at].split())))
            begin = at + 1
        at += 1
    return items


def main(folder: str) -> int:
    certificate = json.loads(Path(folder, "memory.json").read_text(encoding="utf-8"))
    own = Path(folder, "code", certificate["prefix"])
    code, header = (own.with_name(own.name + end).read_text(encoding="utf-8") for end in (".c", ".h"))
    problems = check(certificate, code, header)
    for problem in problems or [f"{sum(map(len, items_in(certificate['program'])))} calls: accepted"]:
        print("calls: " + problem)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
