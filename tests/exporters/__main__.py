"""Every spelling, against its reference and its canonical spelling: python -m tests.exporters [-k WORD] [--jobs N]."""

from __future__ import annotations

import argparse
import sys

from mccompile.measure.workers import LostJob, results
from tests.executors import add_arguments, opened, told

from .jobs import Job, Judged, judged
from .judge import COUNTED_ON, can_count
from .spelling import FAMILIES


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-k", default="", help="only spellings with this in their names")
    add_arguments(parser)
    asked = parser.parse_args()
    counted = can_count()
    if not counted:
        print(f"instructions are not compared: there is no compiler or emulator of {COUNTED_ON} (embedded/install.sh)")
    jobs = [
        Job(family, number, counted)
        for family, spellings in FAMILIES.items()
        for number, spelling in enumerate(spellings)
        if asked.k in f"{family}/{spelling.name}"
    ]
    wrong = sum(bool(each.problems) for each in results(jobs, judged, opened(asked), _lost, _print, told))
    print(f"{len(jobs)} spellings of {len({job.family for job in jobs})} families, {wrong} wrong")
    sys.exit(wrong > 0)


def _lost(lost: LostJob[Job]) -> Judged:
    return Judged(lost.job, (lost.why,))


def _print(each: Judged) -> None:
    if each.problems:
        print(f"{each.job.name}:", *each.problems, sep="\n    ", flush=True)


if __name__ == "__main__":
    main()
