"""Faults that a reviewer of generated C would mark, counted. `python -m tests.emit.c_faults MODEL... --target T`
compiles models and lists them.

What counts is code: comments and literals do not.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from mccompile.base.dtypes import DTYPES
from mccompile.driver import Options, compile
from mccompile.emit.folding import WIDTH

DEEPEST = 6  # braces of loops and branches, and those of the function
_SILENT = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
_BRACKET = re.compile("[{}]")
COPY, PRODUCT = "a copy of a name", "a product of literals"
ONCE = "a loop that runs once"
FAULTS = {
    "an index that is 0": re.compile(r"\bconst mcc_index \w+ = 0;"),
    "a term of 0": re.compile(r"[-+] 0(?![\w.])"),
    "a product with 0": re.compile(r"(?<![\w.])0 \*|\* 0(?![\w.])"),
    "a factor of 1": re.compile(r"(?<![\w.)])1 \*|[*/%] 1(?![\w.])"),
    ONCE: re.compile(r"\bfor \(mcc_index (\w+) = 0; \1 < 1;"),
    "an empty block": re.compile(r"\{\s*\}"),
    "a factor of 1.0": re.compile(r"(?<![\w.])1\.0f? \*|\* 1\.0f?(?![\w.])|mcc_mul_\w+\(mcc_set_\w+\(1\.0f?\),"),
    "an array of one": re.compile(r"^ +(?!static )(?:const )?\w+ \w+\[1\](?: = .*|;)$", re.M),
    PRODUCT: re.compile(r"(?<![*/%\w.)] )(?<![\w.])[1-9]\d* [*/%] [1-9]\d*(?![\w.])"),
    "a fold within an index": re.compile(r"^ +\w+\[[^]=;]*\n[^]=;]*\] = ", re.M),
    "two blank lines": re.compile(r"\n\n\n"),
}
# Counted in networks only: cases of kernels may have a scale of 1, or windows of one row.
OF_CASES = {"a factor of 1.0", "an array of one", "a fold within an index", COPY, PRODUCT}
_COPY = re.compile(r"^(?P<indent> +)const (?P<type>\w+ \**)(?P<name>\w+) = (?P<source>[A-Za-z_]\w*);", re.M)
TOO_LONG, TOO_DEEP = f"a line over {WIDTH}", f"deeper than {DEEPEST}"
NOT_PASSED, NOT_LISTED = "a listed tensor that is not a parameter of its type", "a parameter that is not listed"
COPIED = "lines copied more than 3 times"
RUN, MOST_COPIES, MOST_COPIED = 4, 3, 0.15  # lines of what counts as a copy, how often, and the share of all lines
_KERNEL = re.compile(
    r"^/\* \w+/\w+\n \* (?P<tensors>.*?)\n \* for .*?\*/\n(?P<code>.*?)(?=^/\* \w+/\w+$|\Z)", re.M | re.S
)
_PARAMETERS = re.compile(r"^(?:void|int) \w+\((.*?)\)\n\{", re.M | re.S)
_TENSOR = re.compile(r"(\w+) (\w+)\[[^\]]*\]")
_POINTER = re.compile(r"(\w+) \*(?:MCC_RESTRICT )?(\w+)$")
_FUNCTION = re.compile(r"^\{\n(.*?)^\}", re.M | re.S)
NO_TENSORS = {"copying", "sizes"}  # what is handed besides
_SAYS = re.compile(r"\w")  # a line that is more than brackets


def faults(text: str) -> Iterator[tuple[str, int]]:
    """The faults of a file, each with the number of its line."""
    code = _SILENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    for fault, pattern in FAULTS.items():
        for match in pattern.finditer(code):
            yield fault, code.count("\n", 0, match.start()) + 1
    yield from ((COPY, code.count("\n", 0, place) + 1) for place in _copies(code))
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


def _copies(code: str) -> Iterator[int]:
    """Where constants stand for a name of their type, and neither changes, nor is handed to a macro."""
    for match in _COPY.finditer(code):
        before = code[code.rfind("\n}\n", 0, match.start()) + 1 : match.start()]  # its function, and the head of that
        declares = re.compile(rf"\b{re.escape(match['type'])}(?:MCC_RESTRICT )?{match['source']}\b")
        behind = code[match.end() :]
        scope = re.split(rf"^(?!{match['indent']}|#|$)", behind, maxsplit=1, flags=re.M)[0]
        names = f"(?:{match['name']}|{match['source']})"
        changes = rf"\b{names} (?:[-+*/%&|^]|<<|>>)?= |(?:\+\+|--|&){names}\b|\b[A-Z_]+\([^()]*\b{names}\b"
        if declares.search(before) and not re.search(changes, scope):
            yield match.start()


def listed(text: str) -> Iterator[tuple[str, str]]:
    """The faults of what comments list, with the names, of the operands of kernels."""
    for kernel in _KERNEL.finditer(text):
        tensors = dict(_TENSOR.findall(re.sub(r"\s*\n \* ", " ", kernel["tensors"])))
        for parameters in _PARAMETERS.findall(kernel["code"]):
            pointers = (_POINTER.search(each.strip()) for each in parameters.split(","))
            types = {match[2]: match[1] for match in pointers if match}
            for name in tensors:
                if types.get(name) != DTYPES[tensors[name]].storage_c:
                    yield NOT_PASSED, name
            yield from ((NOT_LISTED, name) for name in types.keys() - tensors.keys() - NO_TENSORS)


def copied(texts: Iterable[str]) -> float:
    """The share of the lines of functions that stand in runs of lines which occur too often; of lines that say
    something, without comments."""
    code = (_SILENT.sub("", text) for text in texts)
    functions = [
        [line.strip() for line in function.splitlines() if _SAYS.search(line)]
        for text in code
        for function in _FUNCTION.findall(text)
    ]
    runs = [(lines, at, tuple(lines[at : at + RUN])) for lines in functions for at in range(len(lines) - RUN + 1)]
    count = Counter(run for _, _, run in runs)
    copies = {(id(lines), at + more) for lines, at, run in runs if count[run] > MOST_COPIES for more in range(RUN)}
    return len(copies) / max(1, sum(map(len, functions)))


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
                for fault, operand in listed(files[name].decode()):
                    print(f"{model} {target} {name}: {operand}: {fault}")
                    total[fault] += 1
            share = copied(files[f"m{end}"].decode() for end in (".c", "_kernels.c"))
            print(f"{model} {target}: {share:.2f} of lines are copies")
            total[COPIED] += share > MOST_COPIED
    print(dict(+total) or "no faults")


if __name__ == "__main__":
    main()
