"""docs/operators.md, made from what `make onnx-suite` found: python -m tests.support_table [--list FILE].

Each row is an operator: the versions of the standard that are compiled, and how many of ONNX's own cases for it pass.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from pathlib import Path

from onnx.backend.test.case.node import collect_testcases

from mccompile.frontend.supported import supported
from tests.onnx_suite import EXCLUSIONS, PASSED, exclusions

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "operators.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--list", type=Path, default=Path("build/onnx_suite.txt"), help="what the suite found")
    path: Path = parser.parse_args().list
    outcomes = {line.split()[1]: line.split()[0] for line in path.read_text(encoding="utf-8").splitlines()}
    cases, passed = counted(outcomes)
    known = supported()
    names = sorted({*known, *cases})
    rows = [row(name, known.get(name), cases[name], passed[name]) for name in names]
    total = sum(status == PASSED for status in outcomes.values())
    DOCUMENT.write_text(
        f"""# Operators

Made by `python -m tests.support_table` from a run of `make onnx-suite`: of the {len(outcomes)} cases that ONNX collects
for backends {total} pass. Those that do not are named in `tests/{EXCLUSIONS.name}`, each with its reason:

{reasons()}

`mccompile ops NAME` tells the attributes of an operator. *Function body*: the operator is compiled as the function that
ONNX defines for it. *Decomposed*: it is rewritten as standard operators when a model is read. What an operator does not
support for a certain model is refused with the reason.

| operator | versions | cases | passed |
|---|---|--:|--:|
{chr(10).join(rows)}
""",
        encoding="utf-8",
    )


def counted(outcomes: dict[str, str]) -> tuple[Counter[str], Counter[str]]:
    """Cases, and those that pass, by the operator that they are for."""
    cases: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # making the data divides by zero on purpose
        made = collect_testcases(None)
    for case in made:
        nodes = case.model.graph.node if case.model is not None else ()
        if case.name not in outcomes or len(nodes) != 1:
            continue
        name = f"{nodes[0].domain}::{nodes[0].op_type}" if nodes[0].domain else nodes[0].op_type
        cases[name] += 1
        passed[name] += outcomes[case.name] == PASSED
    return cases, passed


def row(name: str, versions: tuple[int, ...] | None, cases: int, passed: int) -> str:
    how = "function body" if versions is None and passed else "not" if versions is None else "decomposed"
    return f"| {name} | {', '.join(map(str, versions or ())) or how} | {cases or ''} | {passed if cases else ''} |"


def reasons() -> str:
    """Excluded cases by reason."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in exclusions().items():
        first = reason.removeprefix("as ") if reason.startswith("as test_") else name
        by_reason.setdefault(first, []).append(name)
    return "\n".join(f"- {', '.join(names)}: {exclusions()[first]}" for first, names in by_reason.items())


if __name__ == "__main__":
    main()
