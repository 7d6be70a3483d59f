"""What MISRA C:2012 says of generated code: docs/misra.md, from runs of cppcheck on every target.

python -m embedded.misra             run it, and fail where the page says something else
python -m embedded.misra --write     run it, and write the page's column of targets anew
... --only cortex-m4,generic         these targets alone (compares; does not write)

Rules whose number is in the page and their reasons are written by hand; a rule that is found and has no reason fails.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from onnx import ModelProto

from embedded.models import quantized, recurrent
from mccompile.driver import Options
from mccompile.targets import api
from tests.small_models import branches, compiled, conv

PAGE = Path(__file__).parent.parent / "docs" / "misra.md"
MODELS = (branches, conv, quantized, recurrent)  # most of the runtime, regions, floats and integers
BY_HAND = {"15.6"}  # cppcheck adds most missing braces itself before it looks
EVERY = "all"
TARGETS = tuple(name for name in api.names() if name != "native")  # that one is another on each machine
_RULE = re.compile(r"\[misra-c2012-([0-9.]+)\]")
_ROW = re.compile(r"^\| ([0-9.]+) \| (\w+) \| ([^|]*) \| ([^|]*) \| (.*) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Row:
    """Of the page's table."""

    rule: str
    category: str
    where: str
    targets: str
    why: str

    def __str__(self) -> str:
        return f"| {self.rule} | {self.category} | {self.where} | {self.targets} | {self.why} |"


def page_rows(text: str) -> list[Row]:
    return [Row(*found) for found in _ROW.findall(text)]


def page_with(text: str, rows: Sequence[Row]) -> str:
    """The page with these rows instead of those of the same rules; others are left out."""
    anew = {row.rule: f"{row}\n" for row in rows}
    return re.sub(_ROW.pattern + r"\n", lambda found: anew.get(found[1], ""), text, flags=re.MULTILINE)


def violations(folder: Path, flags: Sequence[str]) -> set[str]:
    """The rules that the C of a model violates."""
    sources = [path.name for path in sorted(folder.glob("*.c")) if path.name != "main.c"]
    command = ["cppcheck", "--std=c99", "--addon=misra", "-q", "-UMCC_CONFIG", "-I.", "-Iruntime", *flags, *sources]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    if "error:" in done.stderr:
        raise SystemExit(done.stderr)
    return set(_RULE.findall(done.stderr))


def predefined(target: api.Target, file: Path) -> None:
    """What the target's compiler defines, so that cppcheck reads the code of the target."""
    command = [target.compiler, *target.cflags, "-dM", "-E", "-x", "c", "/dev/null"]
    file.write_text(subprocess.run(command, capture_output=True, text=True, check=True).stdout, encoding="utf-8")


def found_on(names: Sequence[str], models: Sequence[Callable[[], ModelProto]] = MODELS) -> dict[str, set[str]]:
    """The rules that models violate on each target, as it is configured there."""
    found: dict[str, set[str]] = {name: set() for name in names}
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(2) as pool:
        runs = []
        for name in names:
            macros = Path(scratch) / f"{name}.h"
            predefined(api.load(name), macros)
            for make in models:
                folder = Path(scratch) / name / make.__name__
                compiled(make(), Options(target=name)).write(folder)
                flags = [f"--include={macros}", "--max-configs=1"]
                runs.append((name, pool.submit(violations, folder, flags)))
        for name, run in runs:
            found[name] |= run.result()
    return found


def targets_of(found: Mapping[str, set[str]]) -> dict[str, str]:
    """By rule, where it is violated, as the page writes it."""
    rules = set().union(*found.values())
    where = {rule: [name for name, own in found.items() if rule in own] for rule in rules}
    return {rule: EVERY if len(names) == len(found) else ", ".join(names) for rule, names in where.items()}


def written(rows: Sequence[Row], found: Mapping[str, set[str]]) -> list[Row]:
    """The rows with their targets as found; rules that nothing violates any more are left out."""
    targets = targets_of(found)
    kept = [row for row in rows if row.rule in targets or row.rule in BY_HAND]
    return [Row(r.rule, r.category, r.where, EVERY if r.rule in BY_HAND else targets[r.rule], r.why) for r in kept]


def differences(rows: Sequence[Row], found: Mapping[str, set[str]]) -> list[str]:
    """Where the page says something else than what was found on these targets."""
    listed = {row.rule: row.targets.split(", ") for row in rows}
    problems = []
    for name, own in found.items():
        said = {rule for rule, targets in listed.items() if name in targets or EVERY in targets} - BY_HAND
        problems += [f"{name}: rule {rule} is found, and not listed" for rule in sorted(own - BY_HAND - said)]
        problems += [f"{name}: rule {rule} is listed, and not found" for rule in sorted(said - own)]
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m embedded.misra", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", default="", help="targets, with commas between")
    arguments = parser.parse_args()
    names = arguments.only.split(",") if arguments.only else [*TARGETS]
    found = found_on(names)
    text = PAGE.read_text(encoding="utf-8")
    rows = page_rows(text)
    if arguments.write and not arguments.only:
        PAGE.write_text(page_with(text, written(rows, found)), encoding="utf-8")
        rows = page_rows(PAGE.read_text(encoding="utf-8"))
    problems = differences(rows, found)
    print("\n".join(problems) or f"{len(found)} targets: the page says what cppcheck finds")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
