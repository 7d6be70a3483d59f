"""Changes one place of the code at a time and asks whether a test fails: `make mutants`.

A mutant that no test notices survives. The score is the share of those that were noticed. Mutants are drawn by a seed,
so a run can be repeated; what changes nothing (annotations, lines that this machine does not compile) is not drawn.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import io
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".cache", "build", "dist", "__pycache__", ".*_cache", ".hypothesis")
LEAST_SCORE = 85.0  # per cent

Place = tuple[Callable[[tuple[str, int]], str], tuple[str, int]]  # what gives the changed text, and its argument


@dataclass(frozen=True)
class Subject:
    """Files that decide something, and the tests that hold what they decide."""

    name: str
    files: tuple[str, ...]  # globs
    tests: tuple[str, ...]  # arguments of pytest, the quickest first


_MATRIX = "tests/kernels/test_matrix.py"
SUBJECTS = (
    Subject("memory", ("mccompile/memory/*.py",), ("tests/memory", "tests/passes/test_plan_memory.py")),
    Subject("expr", ("mccompile/expr/*.py",), ("tests/expr", "tests/golden", _MATRIX, "-k", "not warnings")),
    Subject("plan", ("mccompile/plan/*.py",), ("tests/plan", "tests/emit/test_generated_c.py", "tests/golden")),
    Subject("registry", ("mccompile/kernels/registry.py",), ("tests/kernels/test_registry.py",)),
    Subject(
        "in_place",
        ("mccompile/passes/in_place.py",),
        (
            "tests/passes/program/test_bind_storage.py",
            "tests/passes/test_sharing.py",
            "tests/passes/test_plan_memory.py",
        ),
    ),
    Subject("blob", ("mccompile/emit/blob.py",), ("tests/emit/test_blob.py", "tests/emit/test_carriers.py")),
    Subject(
        "runtime",
        tuple(f"runtime_c/include/mcc_{name}.h" for name in ("int", "quant", "float", "narrow", "init", "math")),
        ("tests/runtime_c", "-k", "gcc or quant or init"),
    ),
    Subject("dsp", ("runtime_c/include/mcc_dsp*.h",), (_MATRIX, "-k", "dsp-generic")),
    Subject("scalar", ("runtime_c/include/mcc_scalar*.h",), (_MATRIX, "-k", "scalar-generic")),
    Subject("helium", ("runtime_c/include/mcc_helium*.h",), (_MATRIX, "-k", "helium-generic")),
    Subject("dot", ("runtime_c/include/mcc_dot*.h",), ("tests/runtime_c/test_dot.py", _MATRIX, "-k", "native and dot")),
    Subject(
        "vec",
        ("runtime_c/include/mcc_vec*.h",),
        ("tests/runtime_c/test_vec.py", "tests/runtime_c/test_vec_narrow.py", _MATRIX, "-k", "native and vec"),
    ),
)


@dataclass(frozen=True)
class Mutant:
    subject: Subject
    file: str
    text: str

    def changes(self) -> str:
        before = (ROOT / self.file).read_text(encoding="utf-8").splitlines()
        lines = difflib.unified_diff(before, self.text.splitlines(), self.file, self.file, lineterm="", n=0)
        return "\n".join(lines)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--count", type=int, default=30, help="mutants of each subject")
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--timeout", type=float, default=300, help="seconds after which a mutant counts as noticed")
    options.add_argument("--only", action="append", choices=[subject.name for subject in SUBJECTS])
    asked = options.parse_args()
    noticed, drawn = 0, 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        folders = _copies(Path(scratch), asked.jobs)
        first = folders.queue[0]
        for subject in SUBJECTS:
            if asked.only and subject.name not in asked.only:
                continue
            if not _passes(subject, first, asked.timeout):
                print(f"{subject.name}: its tests fail without any change", file=sys.stderr)
                return 2
            mutants = _drawn(subject, asked.count, asked.seed)
            with ThreadPoolExecutor(asked.jobs) as pool:
                answers = list(pool.map(lambda mutant: _is_noticed(mutant, folders, asked.timeout), mutants))
            survivors = [m for m, was_noticed in zip(mutants, answers, strict=True) if not was_noticed]
            for mutant in survivors:
                print(f"survives:\n{mutant.changes()}", flush=True)
            noticed, drawn = noticed + len(mutants) - len(survivors), drawn + len(mutants)
            print(f"{subject.name}: {len(mutants) - len(survivors)} of {len(mutants)} noticed", flush=True)
    score = 100 * noticed / max(drawn, 1)
    print(f"mutation score {score:.1f} % ({noticed} of {drawn}, seed {asked.seed})")
    return 0 if score >= LEAST_SCORE else 1


def _copies(scratch: Path, count: int) -> Queue[Path]:
    """Checkouts that mutants can be written into, one for each worker."""
    folders: Queue[Path] = Queue()
    for number in range(count):
        folders.put(Path(shutil.copytree(ROOT, scratch / str(number), ignore=LEFT_OUT, symlinks=True)))
    return folders


def _is_noticed(mutant: Mutant, folders: Queue[Path], timeout: float) -> bool:
    folder = folders.get()
    original = (folder / mutant.file).read_bytes()
    try:
        (folder / mutant.file).write_text(mutant.text, encoding="utf-8")
        return not _passes(mutant.subject, folder, timeout)
    finally:
        (folder / mutant.file).write_bytes(original)
        folders.put(folder)


def _passes(subject: Subject, folder: Path, timeout: float) -> bool:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *subject.tests]
    # Files may change twice within a second, which is all that caches of bytecode look at.
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _drawn(subject: Subject, count: int, seed: int) -> list[Mutant]:
    paths = [path for pattern in subject.files for path in sorted(ROOT.glob(pattern))]
    places = [(path, place) for path in paths for place in (_in_python(path) if path.suffix == ".py" else _in_c(path))]
    found: list[Mutant] = []
    for path, (change, where) in random.Random(seed).sample(places, len(places)):
        if len(found) == count:
            break
        text = change(where)
        mutant = Mutant(subject, str(path.relative_to(ROOT)), text)
        if path.suffix == ".py" or (_names(text) <= _names(path.read_text("utf-8")) and _is_compiled_here(mutant)):
            found.append(mutant)
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


def _is_compiled_here(mutant: Mutant) -> bool:
    """Whether the change reaches a compiler of this machine, and is still C."""
    texts = []
    for text in ((ROOT / mutant.file).read_text(encoding="utf-8"), mutant.text):
        command = ["gcc", "-march=native", "-std=gnu99", "-P", "-I", str((ROOT / mutant.file).parent), "-x", "c", "-"]
        done = subprocess.run([*command, "-E"], input=text, text=True, capture_output=True, check=False)
        valid = subprocess.run([*command, "-fsyntax-only"], input=text, text=True, capture_output=True, check=False)
        texts.append(done.stdout if done.returncode == 0 and valid.returncode == 0 else "")
    return bool(texts[1]) and "".join(texts[0].split()) != "".join(texts[1].split())


if __name__ == "__main__":
    sys.exit(main())
