"""ONNX's own backend tests, every one that the installed onnx collects: `make onnx-suite`.

Inputs are inputs, never constants; expected outputs are only compared with, with the suite's own tolerances. What a
case says of the shapes of its outputs may serve as bounds, as any model's may. A case counts as passed only if it ran:
refused is failed, and so is a case that onnx_suite_exclusions.txt leaves out, with its reason. Fails if a case fails
that the file does not name.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mccompile.measure.workers import LostJob, results
from tests.executors import add_arguments, opened, told
from tests.onnx_cases import BROKEN, EXCLUDED, PASSED, REFUSED, WRONG, Case, How, Outcome, collect, tried

EXCLUSIONS = Path(__file__).with_name("onnx_suite_exclusions.txt")
TOLD = 10.0  # seconds between two lines that say how far it is


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="a regular expression that names of cases must match")
    parser.add_argument("--without", default="", help="optional passes to leave out, with commas between")
    parser.add_argument("--O0", dest="plain", action="store_true", help="leave out all optional passes")
    parser.add_argument("--cflags", default="-std=c99 -O1", help="for the C compiler")
    parser.add_argument("--sanitize", action="store_true", help="with AddressSanitizer and UndefinedBehaviorSanitizer")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for one case")
    parser.add_argument("--list", type=Path, default=Path("build/onnx_suite.txt"), help="where outcomes are written")
    add_arguments(parser)
    arguments = parser.parse_args()
    without = frozenset(name for name in arguments.without.split(",") if name)
    flags = tuple(arguments.cflags.split())
    how = How(flags, without, not arguments.plain, arguments.sanitize, arguments.timeout)
    start, left_out = time.perf_counter(), exclusions()
    names = sorted(name for name, _ in collect(how.options) if re.search(arguments.only, name))
    cases = [Case(name, how) for name in names if name not in left_out]
    outcomes = results(cases, tried, opened(arguments), _lost, told=told, every=TOLD)
    outcomes += [Outcome(name, EXCLUDED, left_out[name]) for name in names if name in left_out]
    outcomes.sort(key=lambda outcome: outcome.name)
    arguments.list.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{o.status:<8} {o.name}{'  ' + o.detail if o.detail else ''}\n" for o in outcomes]
    arguments.list.write_text("".join(lines), encoding="utf-8")
    print_summary(outcomes, time.perf_counter() - start, arguments.list)
    return int(any(outcome.status not in (PASSED, EXCLUDED) for outcome in outcomes))


def _lost(lost: LostJob[Case]) -> Outcome:
    return Outcome(lost.job.name, BROKEN, lost.why)


def exclusions() -> dict[str, str]:
    """Reason by name of the case."""
    lines = EXCLUSIONS.read_text(encoding="utf-8").splitlines() if EXCLUSIONS.is_file() else []
    pairs = (line.split(":", 1) for line in lines if line.strip() and not line.startswith("#"))
    return {name.strip(): reason.strip() for name, reason in pairs}


def print_summary(outcomes: list[Outcome], seconds: float, path: Path) -> None:
    counts = Counter(outcome.status for outcome in outcomes)
    for outcome in outcomes:
        if outcome.status not in (PASSED, EXCLUDED):
            print(f"{outcome.status:<8} {outcome.name}  {outcome.detail[:160]}")
    passed = counts[PASSED]
    parts = ", ".join(f"{counts[status]} {status}" for status in (REFUSED, WRONG, BROKEN, EXCLUDED))
    print(f"{passed} passed, {len(outcomes) - passed} failed ({parts}) in {seconds:.0f} s; see {path}")


if __name__ == "__main__":
    sys.exit(main())
