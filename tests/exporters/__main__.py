"""Every spelling, against its reference and its canonical spelling: python -m tests.exporters [-k WORD] [--jobs N]."""

from __future__ import annotations

import argparse
import sys
import traceback
from concurrent.futures import ProcessPoolExecutor

from . import families  # noqa: F401
from .judge import COUNTED_ON, can_count
from .spelling import FAMILIES, problems


def judged(family: str, position: int, counted: bool) -> list[str]:
    spelling = FAMILIES[family][position]
    try:
        return problems(spelling, counted)
    except Exception:
        return [traceback.format_exc(limit=-2)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-k", default="", help="only spellings with this in their names")
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    counted = can_count()
    if not counted:
        print(f"instructions are not compared: there is no compiler or emulator of {COUNTED_ON} (embedded/install.sh)")
    cases = [
        (family, number, counted)
        for family, spellings in FAMILIES.items()
        for number, spelling in enumerate(spellings)
        if asked.k in f"{family}/{spelling.name}"
    ]
    wrong = 0
    with ProcessPoolExecutor(asked.jobs) as pool:
        for (family, number, _), found in zip(cases, pool.map(judged, *zip(*cases, strict=True)), strict=True):
            if found:
                wrong += 1
                print(f"{family}/{FAMILIES[family][number].name}:", *found, sep="\n    ", flush=True)
    print(f"{len(cases)} spellings of {len({family for family, *_ in cases})} families, {wrong} wrong")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
