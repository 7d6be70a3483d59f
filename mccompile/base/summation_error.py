"""Rounding errors of sums of 32-bit floats, by how they are added up, and how exact a call may ask them to be.

Errors are variances, in squares of half a last place of the usual size of a sum: the root of its terms' squares, added
up. A sum made term by term rounds what it has so far at each of them, which is smaller than the whole at first.
"""

from __future__ import annotations

import math

# By any method; by none that is off by more than a plain sum; the same, in short runs; by none that is off by more than
# a sum in short runs.
ANY, PLAIN, SHORT, DIRECT = range(4)
HALF_PLACE = 2.0**-24
RESULT = 1 / 3  # what rounding the result leaves
TERM = 1 / 20  # what each term of a sum leaves
TOTAL = 1 / 12  # what each run leaves, whose sum is added to the total
SHORTEST, LONGEST = 8, 32


def plain(terms: int) -> float:
    return RESULT + terms * TERM


def short_run(terms: int) -> int:
    """How many terms of a sum of so many are added up before they are added to the total: about its root."""
    return min(max(1 << round(math.log2(max(terms, 1)) / 2), SHORTEST), LONGEST)


def rounded_terms(terms: int, asked: int) -> float:
    """What all terms of a sum leave: each, or those of a run and then each run."""
    return _rounded(terms, short_run(terms) if asked >= SHORT else terms)


def _rounded(terms: int, run: int) -> float:
    return run * TERM + -(-terms // run) * TOTAL if terms > run else terms * TERM


def in_runs(terms: int, run: int) -> float:
    """Of a sum in runs of so many terms."""
    return RESULT + _rounded(terms, run)


def in_short_runs(terms: int) -> float:
    return in_runs(terms, short_run(terms))


def allowed(asked: int, terms: int) -> float:
    """The most that a method may be off by."""
    return (math.inf, plain(terms), plain(terms), in_short_runs(terms))[asked]
