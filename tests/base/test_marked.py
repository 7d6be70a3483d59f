"""Marks say which headers and names a text needs, and are gone once it is read."""

from __future__ import annotations

from mccompile.base.marked import Marked, including, named, parted, plain, read, sized, unmarked


def test_headers_print_nothing_and_names_print_themselves() -> None:
    text = f"y = {including('math.h')}sqrtf(x[{named('n')} * 3]);"
    assert read(text) == Marked("y = sqrtf(x[n * 3]);", frozenset({"math.h"}), frozenset({"n"}))
    assert plain("a < b") == "a < b"


def test_sizes_are_told_from_what_stands_around_them() -> None:
    text = f"{including('math.h')}y[i * {sized(36)} + {sized(-5)}] = {named('n')} * INT64_C(2) + {sized(0)};"
    parts, sizes = parted(text)
    assert ([plain(part) for part in parts], sizes) == (["y[i * ", " + -", "] = n * INT64_C(2) + 0;"], [36, 5])
    around = read("".join(parts))
    assert (around.headers, around.names) == ({"math.h"}, {"n"})
    assert plain(text) == "y[i * 36 + -5] = n * INT64_C(2) + 0;"


def test_text_of_users_says_nothing() -> None:
    assert read(unmarked(including("math.h"))).headers == frozenset()
