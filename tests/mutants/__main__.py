"""Changes one place of the code at a time and asks whether a test fails: `make mutants`.

A mutant that no test notices survives. The score is the share of those that were noticed. Mutants are drawn by a seed,
so a run can be repeated; the named ones are tried besides, and all of them must be noticed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from .draw import drawn
from .named import NAMED
from .runs import Runs
from .subjects import SUBJECTS

LEAST_SCORE = 85.0  # per cent


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--count", type=int, default=30, help="mutants of each subject")
    options.add_argument("--jobs", type=int, default=2)
    names = ["named", *(subject.name for subject in SUBJECTS)]
    options.add_argument("--only", action="append", choices=names)
    asked = options.parse_args()
    wanted = asked.only or names
    noticed, tried, lost = 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        runs = Runs(Path(scratch), asked.jobs)
        if "named" in wanted:
            lost = len(NAMED) - runs.noticed("named", [named.mutant() for named in NAMED])
        for subject in SUBJECTS:
            if subject.name in wanted:
                mutants = drawn(subject, asked.count, asked.seed)
                noticed, tried = noticed + runs.noticed(subject.name, mutants), tried + len(mutants)
    score = 100 * noticed / max(tried, 1)
    if tried:
        print(f"mutation score {score:.1f} % ({noticed} of {tried}, seed {asked.seed})")
    return 1 if lost or (tried and score < LEAST_SCORE) else 0


if __name__ == "__main__":
    sys.exit(main())
