"""Gradients of random nodes beside central differences in float64: `python -m tests.gradients --seed 1`."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

from onnx import printer

from tests.fuzz.operators.registry import entries
from tests.judge.nodes import Case

from .nodes import outcomes

SEED, COUNT = 2, 6  # of the documentation's table
Words = defaultdict[str, Counter[str]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gradients", description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT, help="nodes of each operator")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", default="", help="one operator")
    parser.add_argument("--table", type=Path, help="write the table of the documentation there")
    parser.add_argument("--seconds", type=float, default=60, help="at most, for each operator")
    given = parser.parse_args()
    titles = [given.only] if given.only else sorted(entries())
    words: Words = defaultdict(Counter)
    for title in titles:
        for detail in _of_operator(title, given, words):
            print(detail, flush=True)
    for title, counts in sorted(words.items()):
        print(f"{title:40} " + ", ".join(f"{count} {word}" for word, count in sorted(counts.items())))
    if given.table:
        given.table.write_text(page(words, given.seed, given.count), encoding="utf-8")
    total = sum(words.values(), Counter())
    print(", ".join(f"{count} {word}" for word, count in sorted(total.items())))
    return int(total["wrong"] > 0)


def page(words: Words, seed: int, count: int) -> str:
    """docs/learning_operators.md."""
    rows = []
    for title, counts in sorted(words.items()):
        if counts.keys() - {"integers"}:
            columns = (str(counts[word]) for word in ("right", "refused", "wrong", "bends"))
            rows.append(f"| {title} | {' | '.join(columns)} |")
    return (
        f"""# Gradients of operators

Made by `python -m tests.gradients --seed {seed} --count {count} --table FILE`: random nodes of
every operator over floats, in float64, beside central differences. *Right*: within 1e-4 of them at up to six elements
of each operand. *Refused*: in a form that has no rule, or by an operator without one; the message names the node and
says what to freeze. *Bends*: nothing but elements where the function is not smooth. Steps such as those of Floor are
right where their gradient is 0. Rows of zeros: results are random, so there is nothing to compare.

| operator | right | refused | wrong | bends |
|---|--:|--:|--:|--:|
"""
        + "\n".join(rows)
        + "\n"
    )


def _of_operator(title: str, given: argparse.Namespace, words: Words) -> list[str]:
    found: dict[tuple[str, str], str] = {}
    end = time.monotonic() + given.seconds
    for number, (case, outcome) in enumerate(outcomes(given.seed, title)):
        words[outcome.title][outcome.word] += 1
        if outcome.word in ("wrong", "refused", "unjudged"):
            text = f"{outcome.word}  {outcome.title}  {outcome.detail}"
            found.setdefault((outcome.title, outcome.word), f"{text}\n    {number}: {_shown(case)}")
        if number + 1 >= given.count or time.monotonic() > end:
            break
    return list(found.values())


def _shown(case: Case) -> str:
    types = ", ".join(f"{name} {array.dtype.name}{list(array.shape)}" for name, array in case.feeds.items())
    return f"{printer.to_text(case.node)[:300].strip()}  with {types}, opset {case.opset}"


if __name__ == "__main__":
    sys.exit(main())
