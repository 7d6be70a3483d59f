"""Mutants: the code with one place changed, drawn by a seed. What is not code, or changes nothing, is not drawn:
annotations, lines that this machine does not compile, C whose machine code stays the same, `== None` for `is None`."""

from __future__ import annotations

import ast
import contextlib
import difflib
import io
import random
import re
import subprocess
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .subjects import Subject

ROOT = Path(__file__).resolve().parent.parent.parent

Place = tuple[Callable[[tuple[str, int]], str], tuple[str, int]]  # what gives the changed text, and its argument


_ALL_FUNCTIONS = ("-fkeep-inline-functions", "-Dalways_inline=noinline")  # that a compiler prints


@dataclass(frozen=True)
class Mutant:
    file: str
    text: str
    tests: tuple[str, ...]

    def changes(self) -> str:
        before = (ROOT / self.file).read_text(encoding="utf-8").splitlines()
        lines = difflib.unified_diff(before, self.text.splitlines(), self.file, self.file, lineterm="", n=0)
        return "\n".join(lines)


def drawn(subject: Subject, count: int, seed: int) -> list[Mutant]:
    paths = [path for pattern in subject.files for path in sorted(ROOT.glob(pattern))]
    places = [(path, place) for path in paths for place in (_in_python(path) if path.suffix == ".py" else _in_c(path))]
    found: list[Mutant] = []
    for path, (change, where) in random.Random(seed).sample(places, len(places)):
        if len(found) == count:
            break
        before, text = path.read_text("utf-8"), change(where)
        if path.suffix == ".py":
            differs = _is_python(text) and not _only_compares_with_none(before, text)
        else:
            differs = _names(text) <= _names(before) and _differs_compiled(path.parent, before, text)
        if differs:
            found.append(Mutant(str(path.relative_to(ROOT)), text, subject.tests))
    return found


def _names(text: str) -> set[str]:
    return set(re.findall(r"\b[A-Za-z_]\w*", text))


def _in_python(path: Path) -> Iterator[Place]:
    from cosmic_ray import plugins
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code

    text = path.read_text(encoding="utf-8")
    nodes = list(ast_nodes(get_ast(text)))
    idle = _annotations(text)

    def changed(where: tuple[str, int]) -> str:
        name, occurrence = where
        return str(mutate_code(text, plugins.get_operator(name)(), occurrence))

    for name in plugins.operator_names():
        kind = plugins.get_operator(name)
        if kind.arguments():  # variables to be named
            continue
        starts = [start for node in nodes for start, _ in kind().mutation_positions(node)]
        for occurrence, at in enumerate(starts):
            if not any(start <= at < end for start, end in idle):
                yield changed, (name, occurrence)


def _is_python(text: str) -> bool:
    """Whether Python takes it, and does not warn of it: as of `is` with a literal, which `make lint` refuses."""
    try:
        with warnings.catch_warnings(action="error"):
            compile(text, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def _only_compares_with_none(before: str, after: str) -> bool:
    """Whether all that is new is `is None` for `== None`, or the other way round: they say the same."""
    same = ({ast.Is, ast.Eq}, {ast.IsNot, ast.NotEq})
    for old, new in zip(ast.walk(ast.parse(before)), ast.walk(ast.parse(after)), strict=False):
        if isinstance(old, ast.Compare) and isinstance(new, ast.Compare):
            for a, b, to in zip(old.ops, new.ops, old.comparators, strict=False):
                if type(a) is not type(b):
                    return {type(a), type(b)} in same and isinstance(to, ast.Constant) and to.value is None
    return False


def _annotations(text: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where types stand, from and to: changing them changes nothing."""
    found: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.arg | ast.AnnAssign):
            found.append(node.annotation)
        elif isinstance(node, ast.FunctionDef):
            found.append(node.returns)
    return [
        ((n.lineno, n.col_offset), (n.end_lineno or n.lineno, n.end_col_offset or n.col_offset)) for n in found if n
    ]


def _in_c(path: Path) -> Iterator[Place]:
    from universalmutator.mutator import mutants_regexp

    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    with contextlib.redirect_stdout(io.StringIO()):
        found = mutants_regexp(lines, ["universal.rules", "c_like.rules"], ignorePatterns=[r"^\s*#", r"^\s*/?\*", r'"'])

    def changed(where: tuple[str, int]) -> str:
        line, number = where
        return "".join([*lines[: number - 1], line, *lines[number:]])

    for number, line, _, _ in found:
        yield changed, (line, number)


def _differs_compiled(folder: Path, before: str, after: str) -> bool:
    """Whether the change is still C and reaches the machine code that the compiler here makes of it."""
    if _compiled(folder, before, "-E", "-P").split() == _compiled(folder, after, "-E", "-P").split():
        return False
    found = _compiled(folder, after, "-S", "-O2")
    return found != "" and found != _compiled(folder, before, "-S", "-O2")


@cache
def _compiled(folder: Path, text: str, *how: str) -> str:
    """Of all functions in a header, inlined or not; nothing if it is not C."""
    command = ["gcc", *how, "-march=native", "-std=gnu99", *_ALL_FUNCTIONS, "-I", str(folder), "-x", "c", "-"]
    done = subprocess.run([*command, "-o", "-"], input=text, text=True, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else ""
