"""Checks the ranges of integers: `python check_ranges.py FOLDER`. Needs Python 3.10 and nothing else.

FOLDER/ranges.json is accepted if
1. every step of the program that computes with integers is there, or is listed as one of which nothing is claimed,
2. the range of every operand is that of its type, or has every element that lies in its bytes of the blob,
3. no sum of products can leave the range said of it, in any order, zero points subtracted before or after,
4. every operation gives what is said of it for all operands in their ranges; and one that is said to be exact neither
   overflows, nor shifts by its width or more, nor by less than 0.
Ranges of operands that a kernel packed in an order of its own (`packed`) are taken on trust.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

TYPES = {"bool": (0, 1)}
for bits in (2, 4, 8, 16, 32, 64):
    TYPES[f"u{bits}"] = (0, 2**bits - 1)
    TYPES[f"i{bits}"] = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
CODES = {"i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q"}
SATURATED = {"saturate_i8": TYPES["i8"], "saturate_u8": TYPES["u8"]}
ONE, TWO = ("neg", "abs", "cast", *SATURATED), ("add", "sub", "mul", "min", "max", "shift_left", "shift_right")
OPERANDS = dict.fromkeys(ONE, 1) | dict.fromkeys(TWO, 2) | {"fixed_product": 2, "fixed_round": 2, "shift_even": 2}
OPERANDS |= {"high_sum": 3, "select": 3, "literal": 0, "operand": 0, "position": 0}
ZEROS = {"x_zero": "a", "a_zero": "a", "w_zero": "b", "b_zero": "b"}  # whose numbers they are subtracted from
SOURCES = ("operand", "literal", "position")


def check(certificate: dict[str, Any], memory: dict[str, Any], blob: bytes) -> list[str]:
    """All problems. `memory`: the certificate of the plan, which the C is held to."""
    try:
        data = blob[int.from_bytes(blob[32:40], "little") :]
        problems = list(_all_there(certificate, memory))
        for step in certificate["steps"]:
            what = f"step {step['step']} ({step['function']})"
            problems += [f"{what}: {problem}" for problem in _step(step, data)]
        return problems
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return [f"the certificate is malformed: {type(error).__name__}: {error}"]


def _all_there(certificate: dict[str, Any], memory: dict[str, Any]) -> Iterator[str]:
    """The steps of the plan, and the places in the blob that their arguments touch."""
    calls = {call["step"]: call for call in calls_in(memory["program"])}
    listed = [*certificate["steps"], *certificate["other"]]
    if len({step["step"] for step in listed}) != len(listed) or certificate["prefix"] != memory["prefix"]:
        yield "a step is there twice, or it is another model"
    if certificate["not_integer"] != sorted({*calls} - {step["step"] for step in listed}):
        yield "the steps without integers are not those that are left"
    for step in listed:
        if step["step"] not in calls or calls[step["step"]]["function"] != step["function"]:
            yield f"step {step['step']} is not a step of the program"
    for step in certificate["steps"]:
        call = calls[step["step"]]
        if step["kind"] != call["kind"]:
            yield f"step {step['step']} is of another kind than its call"
        read = call["arguments"][len(call["writes"]) :][: len(call["reads"])]
        if [a["role"] for a in read] != [operand["role"] for operand in step["operands"]]:
            yield f"step {step['step']} has other operands than its call"
            continue
        for argument, operand in zip(read, step["operands"], strict=True):
            place = (argument["base"], argument["low"], argument["high"])
            if operand["from"] == "blob" and place != ("blob", operand["low"], operand["high"]):
                yield f"step {step['step']}: {operand['role']} lies elsewhere"
            if operand["from"] == "packed" and argument["base"] != "blob":
                yield f"step {step['step']}: {operand['role']} is not of the blob"


def _step(step: dict[str, Any], data: bytes) -> Iterator[str]:
    for operand in step["operands"]:
        yield from _operand(operand, data)
    total = step["sum"]
    given: list[Any] = [operand["range"] for operand in step["operands"]]
    dtypes = [operand["dtype"] for operand in step["operands"]]
    if step["kind"] != "map":
        fixed = step["fixed"]
        if any(operand["role"] in ZEROS for operand in step["operands"][fixed:]) or fixed < 2:
            yield "a zero point is not a part of the sum"
        given, dtypes = [None, *given[fixed:]], [None, *dtypes[fixed:]]
    if total is not None:
        yield from _sum(total, step["operands"][: step["fixed"]])
        given[0], dtypes[0] = total["range"], total["dtype"]
    for number, node in enumerate(step["nodes"]):
        before = step["nodes"][:number]
        if any(not 0 <= each < number for each in node["arguments"]):
            yield f"operation {number} comes before its arguments"
        elif len(node["arguments"]) != OPERANDS.get(node["op"], len(node["arguments"])):
            yield f"operation {number} has another number of arguments"
        elif node["op"] == "operand":
            if dtypes[node["of"]] not in (None, node["dtype"]) or node["range"] != given[node["of"]]:
                yield f"operation {number} has another range than its operand"
            if node["exact"] is not None:
                yield f"operation {number} is none"
        else:
            yield from _operation(number, node, [before[each] for each in node["arguments"]])


def _operand(operand: dict[str, Any], data: bytes) -> Iterator[str]:
    dtype, found, name = operand["dtype"], operand["range"], operand["role"]
    if dtype not in TYPES:
        if found is not None or operand["from"] != "type":
            yield f"{name} has a range, and is not an integer"
        return
    low, high = TYPES[dtype]
    if not low <= found[0] <= found[1] <= high:
        yield f"{name} has a range beyond its type"
    if operand["from"] == "type" and found != [low, high]:
        yield f"{name} has another range than its type"
    if operand["from"] == "blob":
        elements = array(CODES[dtype], data[operand["low"] : operand["high"]])
        if sys.byteorder == "big":
            elements.byteswap()
        if not elements or min(elements) != found[0] or max(elements) != found[1]:
            yield f"{name} has elements out of its range"
    elif operand["from"] not in ("type", "packed"):
        yield f"{name} has its range from nowhere"


def _sum(total: dict[str, Any], operands: list[dict[str, Any]]) -> Iterator[str]:
    a, b = operands[0], operands[1]
    zeros = {"a": [0, 0], "b": [0, 0]}
    for operand in operands[2:]:
        zeros[ZEROS[operand["role"]]] = operand["range"]
    a_less = [a["range"][0] - zeros["a"][1], a["range"][1] - zeros["a"][0]]
    b_less = [b["range"][0] - zeros["b"][1], b["range"][1] - zeros["b"][0]]
    terms = [x * y for x in a_less for y in b_less]
    sizes = [max(-low, high) for low, high in (a["range"], b["range"], zeros["a"], zeros["b"])]
    most = total["products"] * (sizes[0] + sizes[2]) * (sizes[1] + sizes[3])
    exact = most <= TYPES[total["dtype"]][1]
    found = [min(0, total["products"] * min(terms)), max(0, total["products"] * max(terms))]
    if total["products"] < 1 or total["any_order"] != most or total["exact"] != exact:
        yield "the sum may be larger than it is said to be"
    if total["range"] != (found if exact else list(TYPES[total["dtype"]])):
        yield "the sum has another range"


def _operation(number: int, node: dict[str, Any], arguments: list[dict[str, Any]]) -> Iterator[str]:
    op, said = node["op"], node["range"]
    whole = TYPES.get(node["dtype"])
    if op == "literal":
        if arguments or node["exact"] is not None or (said is None) != (whole is None or op != "literal"):
            yield f"operation {number} is not a literal"
        elif said is not None and said != [int(node["value"]), int(node["value"])]:
            yield f"operation {number} is another number"
        return
    if whole is None:
        if said is not None or node["exact"] is not None:
            yield f"operation {number} ({op}) gives no integer"
        return
    ranges = [argument["range"] for argument in arguments]
    found = None if None in ranges or op in SOURCES else mathematical(op, ranges, whole)
    if found is None:
        fits = said == list(whole) and node["exact"] in (None, False)
    else:
        exact = whole[0] <= found[0] and found[1] <= whole[1]
        fits = said == list(found if exact else whole) and node["exact"] is exact
    if not fits:
        yield f"operation {number} ({op}) gives other numbers than it is said to"


def mathematical(op: str, ranges: list[list[int]], whole: tuple[int, int]) -> tuple[int, int] | None:
    """What an operation gives without a limit to its numbers; None: any number of its type."""
    a, b, c = (*ranges, [0, 0], [0, 0])[:3]
    if whole == TYPES["bool"] and op != "cast":
        return None
    width = (whole[1] - whole[0]).bit_length()
    if op in ("shift_left", "shift_right"):
        if b[0] < 0 or b[1] >= width:
            return None
        ends = [x << n if op == "shift_left" else x >> n for x in a for n in b]
    elif op == "shift_even":
        if b[0] < 2 or b[1] > 30 or a[1] + 4 > whole[1]:
            return None
        ends = [x >> n for x in (a[0], a[1] + 4) for n in b]
    elif op == "fixed_round":
        if b[0] < 0 or b[1] > 127:
            return None
        ends = [x >> (n & 63) for x in a for n in range(b[0], b[1] + 1)]
        ends.append(min(ends) - 1 if b[1] >= 64 else min(ends))
    elif op in SATURATED:
        low, high = SATURATED[op]
        ends = [min(max(x, low), high) for x in a]
    elif op in ("add", "sub", "mul"):
        ends = [x + y if op == "add" else x - y if op == "sub" else x * y for x in a for y in b]
    elif op in ("min", "max"):
        ends = [(min if op == "min" else max)(pair) for pair in zip(a, b, strict=True)]
    elif op == "neg":
        ends = [-x for x in a]
    elif op == "abs":
        ends = [*map(abs, a), *([0] if a[0] <= 0 <= a[1] else [])]
    elif op == "select":
        ends = [*b, *c]
    elif op == "cast":
        ends = list(whole if whole == TYPES["bool"] else a)
    elif op in ("high_sum", "fixed_product"):
        factors = (b, c) if op == "high_sum" else (a, b)
        products = [x * y >> 32 for x in factors[0] for y in factors[1]]
        start = a if op == "high_sum" else [0, 0]
        ends = [start[0] + min(products), start[1] + max(products)]
    else:
        return None
    return min(ends), max(ends)


def calls_in(items: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for item in items:
        ((kind, inner),) = item.items()
        yield from [inner] if kind == "call" else inner["calls"] if kind == "rows" else ()
        for name in {"if": ("then", "else"), "loop": ("body",)}.get(kind, ()):
            yield from calls_in(inner[name])


def main(folder: str) -> int:
    certificate, memory = (json.loads(Path(folder, f"{name}.json").read_text()) for name in ("ranges", "memory"))
    blob = Path(folder, "code", f"{certificate['prefix']}.mcb").read_bytes()
    problems = check(certificate, memory, blob)
    exact = sum(node["exact"] is True for step in certificate["steps"] for node in step["nodes"])
    for problem in problems or [f"{len(certificate['steps'])} steps, {exact} exact operations: accepted"]:
        print("ranges: " + problem)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
