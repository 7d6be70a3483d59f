"""Locals that nothing reads are not declared."""

from __future__ import annotations

from mccompile.base.marked import local, named, plain
from mccompile.emit.unread import without_unread

A, B = local("a", "const long a = 1;"), local("b", f"const long b = {named('a')} + 1;")


def kept(*lines: str) -> list[str]:
    return plain(without_unread("\n".join(lines))).splitlines()


def test_what_is_read_behind_it_stays() -> None:
    assert kept(A, f"y[0] = {named('a')};") == ["const long a = 1;", "y[0] = a;"]
    assert kept(A, "for (;;) {", f"y[0] = {named('a')};", "}")[0] == "const long a = 1;"


def test_what_is_not_read_goes_with_what_only_that_reads() -> None:
    assert kept(A, B, "y[0] = 1;") == ["y[0] = 1;"]


def test_what_another_block_reads_does_not_count() -> None:
    assert kept("{", A, "}", "{", f"y[0] = {named('a')};", "}")[:2] == ["{", "}"]
    assert kept("if (x) {", A, "} else {", f"y[0] = {named('a')};", "}")[1] == "} else {"


def test_what_stands_before_it_does_not_count() -> None:
    assert kept(f"y[0] = {named('a')};", A) == ["y[0] = a;"]
