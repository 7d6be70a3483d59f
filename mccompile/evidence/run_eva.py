"""Runs Frama-C/Eva over the code of a folder of evidence: `python run_eva.py [FOLDER]`. Needs frama-c.

Eva interprets C with sets of values: what it raises no alarm for happens in no run. `eva.c` is the program that it
looks at. A copy of the code gets annotations `//@ loop unroll`, comments to a C compiler, at loops by whose turn
something is decided: their turns are told apart, those of all other loops are taken together. What raises alarms is
looked at again with more turns told apart (`LEVELS`): no alarm at one of them is a proof, as every one is sound.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

# Functions of numbers in C's library of which Frama-C has no contract: it takes them to read and write nothing else.
_PURE = re.compile(r"(?:a?(?:cos|sin|tan)h?|erfc?|expm1|exp2|log1p|cbrt|copysign)f?")
TURNS = 10000  # more than a loop that steers has
ALWAYS_APART = 8  # turns that are told apart in a step whatever the loop does, where so few are all
STATES = 100000  # more than places in a table, by which a loop goes from one to the next
LEVELS = (
    "rows together",  # all rows of a stage in one call
    "inner rows together",  # at the edges one by one
    "row by row",
    # and loops that call functions with what they move, or fill arrays by it or with indices; macros in full
    "pointers turn by turn",
)
_TOGETHER = {LEVELS[0]: "-DROWS_TOGETHER", LEVELS[1]: "-DINNER_TOGETHER"}
_CONTINUED = re.compile(r" *\\$", re.M)  # a line of a macro
_LOOP = re.compile(r"^([ \t]*)(for|while) (?=\()", re.M)
_SUBSCRIPT = re.compile(r"\[[^][]*\]")
_CHANGED = re.compile(r"(?<![\w.>\]])(\w+) (?:[-+*/]|<<|>>)?=(?!=)|(?:\+\+|--)(\w+)|(\w+)(?:\+\+|--)")
_DERIVED = re.compile(r"\s*(?:const )?(?:mcc_index|size_t|int|u?int32_t) (\w+) = (.*)", re.S)
_NAMES = re.compile(r"[A-Za-z_]\w*")
_CONDITION = re.compile(r"\s*(?:else )?(?:if|while|for) (\(.*)", re.S)
_MOVED = re.compile(r"(?<![\w.>\]])(\w+) [-+]=|(?:\+\+|--)(\w+)|(\w+)(?:\+\+|--)")
_STRIDE = re.compile(r"[-+]= [^\W\d]")
_FEW = re.compile(r" < [1-8]$")  # turns: to tell them apart costs little, and what they fill is known after them
_CONSTANT = re.compile(r"const mcc_index (\w+) = (\d+);")
_BOUND = re.compile(r"(?<= < )\w+(?=;)")
_PICKED = re.compile(r"&\w+\[(\w+)\]")
_ROWS = re.compile(r"\s*mcc_index \w+ = begin;")
_PASSED_ON = re.compile(r"(?<![\w.>\]])(\w+) = \w+\([^;{}]*\b\1\b")
_FILLED = re.compile(r"\*\w+\+\+ = ")
_INDICES = re.compile(r"\bint(?:32|64)_t \*(?:MCC_RESTRICT )?(\w+)")  # what may be read by them later
_STORED = re.compile(r"(?<![\w.>\]])(\w+)\[[^;{}]*\] = ")
_POINTER = re.compile(r"\*(?:MCC_RESTRICT |const )?(\w+)(?: =|[,;)])")
_CALL = re.compile(r"\bmcc_\w+(\([^;{}]*)")
_WALK = re.compile(r"(?<![\w.>\]])(\w+) = [^;{}]*\[[^][;]*\b\1\b")
# Where a function begins that divides by its last operand if that is not 0, or adds it to a number of the other sign:
# what is not 0 is no range, unless numbers below 0 are told apart from others.
_BY_SIGN = re.compile(r"\w (\w+)\)[\s\\]*\{[\s\\]*(?=[^{}]*(?:\b\1 == 0\b[^{}]*[/%] \1\b|< 0\) != \(\1 < 0\)))")
_CHOICE = re.compile(r"([^=,?:]*[^=,?:\s])\s*\?")


def bracketed(text: str, at: int, begin: str, end: str) -> int:
    """Behind what closes the bracket at `at`."""
    depth = 0
    while True:
        depth += (text[at] == begin) - (text[at] == end)
        at += 1
        if depth == 0:
            return at


def loops(text: str) -> Iterator[tuple[int, str, str, str]]:
    """Where each begins, its indentation, what stands in its parentheses, and its body."""
    for found in _LOOP.finditer(text):
        begin = found.end()
        end = bracketed(text, begin, "(", ")")
        body = end + len(text[end:]) - len(text[end:].lstrip())
        last = bracketed(text, body, "{", "}") if text[body] == "{" else text.index(";", body) + 1
        yield found.start(), found[1], text[begin + 1 : end - 1], text[body:last]


def steers(head: str, body: str) -> bool:
    """Does a turn decide by its number what is done? A `while` counts by what its body makes of it."""
    parts = head.split(";")
    if len(parts) != 3:
        return True
    moved = {name for names in _CHANGED.findall(f"{parts[0]};{parts[2]}") for name in names if name}
    if not parts[2].strip() or _STRIDE.search(parts[2]) or _FEW.search(parts[1]):
        return True
    statements = [_without_subscripts(each) for each in re.split(r"[;{}]", _CONTINUED.sub("", body))]
    for _ in statements:
        derived = {found[1] for found in map(_DERIVED.match, statements) if found and _names(found[2]) & moved}
        if derived <= moved:
            break
        moved |= derived
    if moved & set(_PICKED.findall(body)):  # else what is written by that pointer joins what was there
        return True
    return any(_names(text) & moved for each in statements for text in _conditions(each))


def walks(head: str, body: str) -> bool:
    """Does a `while` go from place to place as a table says? How often depends on the table and on numbers."""
    places = {found[1] for found in _WALK.finditer(body)}
    return ";" not in head and any(_names(index) & places for index in _SUBSCRIPT.findall(head))


def moves(body: str, pointers: set[str]) -> bool:
    """Is a function called with something that every turn moves on, or an array filled by such a pointer?"""
    moved = {name for names in _MOVED.findall(body) for name in names if name}
    moved |= set(_PASSED_ON.findall(body)) & pointers
    return bool(_FILLED.search(body)) or any(_names(call) & moved for call in _CALL.findall(body))


def _conditions(statement: str) -> Iterator[str]:
    """What a statement decides by."""
    if found := _CONDITION.match(statement):
        yield found[1]
    if " = " not in statement and re.search(r" (?:<|<=|>|>=|!=) ", statement):
        yield statement  # the second part of a `for`
    yield from (found[1] for found in _CHOICE.finditer(statement))
    yield from re.findall(r"(\w+)\)? %", statement)


def _names(text: str) -> set[str]:
    return set(_NAMES.findall(text))


def _without_subscripts(text: str) -> str:
    while (less := _SUBSCRIPT.sub("", text)) != text:
        text = less
    return text


def _counted(head: str, constants: dict[str, str]) -> str:
    """The same with the number that a constant with a name is."""
    return _BOUND.sub(lambda bound: constants.get(bound[0], bound[0]), head)


def annotated(text: str, level: str) -> str:
    """The same C, and annotations. In macros there are fewer before the last level: most of their loops are the
    innermost ones."""
    notes, pointers, indices = list[tuple[int, str]](), set(_POINTER.findall(text)), set(_INDICES.findall(text))
    constants = [*_CONSTANT.finditer(text)]
    for at, indent, head, body in loops(text):
        head = _counted(head, {each[1]: each[2] for each in constants if each.start() < at})
        begin = at + len(indent)
        in_macro = text[at:].partition("\n")[0].endswith("\\")
        by_stride = in_macro and level != LEVELS[-1]
        if level in _TOGETHER and _ROWS.match(head):
            continue
        if not in_macro and walks(head, body):  # a state for each place, and all as one behind the loop
            end = text.index(body, begin) + len(body)
            notes += [(begin, f"//@ slevel {STATES};\n{indent}"), (end, f"\n{indent}//@ slevel default;\n{indent};")]
            continue
        passes_on = level == LEVELS[-1] and (moves(body, pointers) or bool(indices & set(_STORED.findall(body))))
        passes_on |= any(walks(*inner) for _, _, *inner in loops(body))  # which begin where each turn says
        if passes_on or (_STRIDE.search(head.rpartition(";")[2]) if by_stride else steers(head, body)):
            note = f"/*@ loop unroll {TURNS}; */ " if in_macro else f"//@ loop unroll {TURNS};\n{indent}"
            notes.append((begin, note))
    notes += [(each.end(), f"/*@ split {each[1]} < 0; */ ") for each in _BY_SIGN.finditer(text)]
    return _with(text, notes)


def _with(text: str, notes: list[tuple[int, str]]) -> str:
    """The same with so many notes at places."""
    found, done = list[str](), 0
    for at, note in sorted(notes):
        found += [text[done:at], note]
        done = at
    return "".join(found) + text[done:]


def command(code: Path, about: dict[str, Any], entry: str, level: str) -> list[str]:
    """Run in a folder with `eva.c` and the code. NaN and infinity are values like any other, and no alarm. In `main`
    functions whose calls are looked at by themselves in steps stand for any that write what they are handed."""
    prefix, alone = about["prefix"], about["alone"]
    sources = sorted(path.name for path in code.glob(f"{prefix}*.c") if not path.name.endswith("_main.c"))
    if entry not in ("main", *(f"step{number}" for number in about["reads"])):  # weights are unknown: none is parsed
        sources = [name for name in sources if name != f"{prefix}_weights.c"]
    opening = ",".join(f"{name}:{TURNS}" for name in (f"{prefix}_init", "mcc_blob_open", "mcc_check_arena", "main"))
    whole = ["-eva-slevel-function", opening, *(["-eva-use-spec", ",".join(alone)] if alone else [])]
    together = f" {_TOGETHER[level]}" if level in _TOGETHER else ""
    known = ["-eva-domains", "gauges", "-eva-auto-loop-unroll", str(ALWAYS_APART)]
    if level != LEVELS[-1]:
        known += ["-eva-stop-at-nth-alarm", "1"]  # the next level decides
    return [
        *("frama-c", "-machdep", about["machine"], f"-cpp-extra-args=-CC -I. -Iruntime -DMCC_DSP_PORTABLE{together}"),
        *("eva.c", *sources, "-main", entry),
        *("-kernel-warn-key", "*=inactive,annot:missing-spec=active", "-eva-warn-key", "*=feedback,alarm=active"),
        *("-eva", "-eva-no-results", "-eva-no-print", "-warn-special-float", "none", "-eva-split-return", "full"),
        *(whole if entry == "main" else known),
    ]


def run(folder: Path) -> tuple[list[str], str]:
    """What Eva raises, and how it sums up."""
    about = json.loads((folder / "evidence.json").read_text(encoding="utf-8"))["eva"]
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(os.cpu_count()) as workers:
        copies = {level: copied(folder, Path(temporary, level.replace(" ", "_")), level) for level in LEVELS}
        entries = ["main", *(f"step{number}" for number in about["steps"])]
        found = [*workers.map(lambda entry: looked_at(entry, copies, about), entries)]
    alarms = [alarm for told, _, _ in found for alarm in told]
    reached, there = (sum(each) for each in zip(*(counts for _, *counts in found), strict=True))
    return list(dict.fromkeys(alarms)), f"{reached} statements reached (out of {there})"


def copied(folder: Path, code: Path, level: str) -> Path:
    """The code with annotations, and the program."""
    shutil.copytree(folder / "code", code)
    shutil.copy(folder / "eva.c", code)
    for path in (*code.glob("*.c"), *code.glob("runtime/*.h")):
        if not path.name.endswith("_weights.c") and path.name not in ("main.c", "eva.c", "mcc_init.h"):
            path.write_text(annotated(path.read_text(encoding="utf-8"), level), encoding="utf-8")
    return code


def levels(entry: str, about: dict[str, Any]) -> list[str]:
    """Those at which something else is looked at than before: what has no rows is the same row by row."""
    rows = entry in (f"step{number}" for number in about["rows"])
    return [level for level in LEVELS if (rows or level != LEVELS[2]) and (entry != "main" or level != LEVELS[1])]


def looked_at(entry: str, copies: dict[str, Path], about: dict[str, Any]) -> tuple[list[str], int, int]:
    """What Eva raises of it at the first level that raises nothing, or at the last one."""
    told, reached, there = list[str](), 0, 0
    for level in levels(entry, about):
        code = copies[level]
        told, reached, there = said(command(code, about, entry, level), code, about["alone"])
        if not told:
            break
    return told, reached, there


def said(words: list[str], code: Path, alone: list[str]) -> tuple[list[str], int, int]:
    """What one run raises, the statements that it reaches, and all there are."""
    where = {**os.environ, "PWD": str(code)}
    done = subprocess.run(words, cwd=code, env=where, capture_output=True, text=True, check=False)
    if done.returncode or "ANALYSIS SUMMARY" not in done.stdout:
        return [f"frama-c failed: {(done.stdout + done.stderr)[-2000:]}"], 0, 0
    unknown = set(re.findall(r"Neither code nor specification for function (\w+)", done.stdout)) - set(alone)
    if strange := [name for name in sorted(unknown) if not _PURE.fullmatch(name)]:
        return [f"nothing is known of {', '.join(strange)}"], 0, 0
    alarms = re.findall(r"^\[eva:alarm\] ([^\n]*(?:\n  [^\n]*)*)", done.stdout, re.M)
    left = re.search(r"^  (\d+) alarms? generated", done.stdout, re.M)
    covered = re.search(r"(\d+) statements reached \(out of (\d+)\)", done.stdout)
    told = [re.sub(r"\s+", " ", alarm) for alarm in alarms]
    if (int(left[1]) if left else 0) != len(set(told)) and not told:
        told = [f"{left[1] if left else 0} alarms that are not shown"]
    if "Frama_C_show_each_done" not in done.stdout:
        told.append("no run comes to its end")
    return told, int(covered[1]) if covered else 0, int(covered[2]) if covered else 0


def main(folder: Path) -> int:
    if not shutil.which("frama-c"):
        print("eva: not run, frama-c is not here (apt-get install frama-c-base)")
        return 2
    alarms, covered = run(folder)
    for alarm in alarms:
        print(f"eva: {alarm}")
    print(f"eva: {len(alarms)} alarms, {covered}, {sum(os.times()[2:4]):.0f} s")
    return int(bool(alarms))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent))
