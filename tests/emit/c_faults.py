"""Faults that a reviewer of generated C would mark, counted. `python -m tests.emit.c_faults MODEL... --target T`
compiles models and lists them.

What counts is code: comments and literals do not.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mccompile.driver import Options, compile
from mccompile.emit.folding import WIDTH

DEEPEST = 6  # braces of loops and branches, and those of the function
_SILENT = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
_BRACKET = re.compile("[{}]")
ONCE = "a loop that runs once"
FAULTS = {
    "an index that is 0": re.compile(r"\bconst mcc_index \w+ = 0;"),
    "a term of 0": re.compile(r"[-+] 0(?![\w.])"),
    "a product with 0": re.compile(r"(?<![\w.])0 \*|\* 0(?![\w.])"),
    "a factor of 1": re.compile(r"(?<![\w.])1 \*|[*/%] 1(?![\w.])"),
    ONCE: re.compile(r"\bfor \(mcc_index (\w+) = 0; \1 < 1;"),
    "an empty block": re.compile(r"\{\s*\}"),
}
TOO_LONG, TOO_DEEP = f"a line over {WIDTH}", f"deeper than {DEEPEST}"


def faults(text: str) -> Iterator[tuple[str, int]]:
    """The faults of a file, each with the number of its line."""
    code = _SILENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    for fault, pattern in FAULTS.items():
        for match in pattern.finditer(code):
            yield fault, code.count("\n", 0, match.start()) + 1
    around: list[bool] = []  # is it a function, a loop or a branch, and no block of declarations?
    for number, (line, whole) in enumerate(zip(code.splitlines(), text.splitlines(), strict=True), 1):
        for letter in _BRACKET.findall(line):
            if letter == "{":
                around.append(line.strip() != "{" or line == "{")
            elif around:
                around.pop()
        if len(whole) > WIDTH:
            yield TOO_LONG, number
        if line.endswith("{") and sum(around) > DEEPEST:
            yield TOO_DEEP, number


def of_model(name: str) -> set[str]:
    """The files of a model's package that its own code is in."""
    return {f"{name}.c", f"{name}.h", f"{name}_kernels.c", f"{name}_kernels.h"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--target", action="append")
    arguments = parser.parse_args()
    total: Counter[str] = Counter()
    for model in arguments.models:
        for target in arguments.target or ["generic"]:
            files = compile(model, Options(target=target, name="m")).files
            for name in sorted(of_model("m")):
                for fault, number in faults(files[name].decode()):
                    print(f"{model} {target} {name}:{number}: {fault}")
                    total[fault] += 1
    print(dict(total) or "no faults")


if __name__ == "__main__":
    main()
