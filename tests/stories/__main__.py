"""Random stories of users: `make stories SECONDS=600 SEED=1`. Status 1 says that one ended badly."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from mccompile.base.discovery import CACHE
from mccompile.toolchain import build

from .story import Story

STEPS = 12  # of a story
AT_ONCE = 5  # stories between two looks at the clock


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stories", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stories", type=int, default=0, help="end after so many, whatever the time")
    parser.add_argument("--shrink", action="store_true", help="make what ends badly short, which takes up to minutes")
    arguments = parser.parse_args()
    build.LEVEL = "-O0"
    end, told, bad = time.monotonic() + arguments.seconds, 0, 0
    with tempfile.TemporaryDirectory(prefix="stories-") as cache:
        os.environ[CACHE] = cache
        while time.monotonic() < end and (not arguments.stories or told < arguments.stories):
            bad += not tell(arguments.seed, told, arguments.shrink)
            told += AT_ONCE
    print(f"{told} stories of seed {arguments.seed}, {bad} groups of {AT_ONCE} with a bad end")
    return int(bad > 0)


def tell(number: int, first: int, small: bool) -> bool:
    """Stories of one seed; did all end well?"""
    phases = (Phase.generate, Phase.shrink) if small else (Phase.generate,)
    how = settings(
        max_examples=AT_ONCE, stateful_step_count=STEPS, deadline=None, database=None, phases=phases,
        suppress_health_check=list(HealthCheck), print_blob=False,
    )  # fmt: skip
    chosen = seed(number * 1_000_003 + first)(type("Story", (Story,), {}))
    try:
        run_state_machine_as_test(chosen, settings=how)
    except Exception:
        print(f"==== --seed {number}, from story {first} on")
        traceback.print_exc(file=sys.stdout)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
