"""Changes that would each be a bug of a kind that slips through: `make mutants` tries every one, whatever is drawn."""

from __future__ import annotations

from dataclasses import dataclass

from .draw import ROOT, Mutant


@dataclass(frozen=True)
class Named:
    """One text instead of another in a file, and the tests that notice."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]  # arguments of pytest

    def mutant(self) -> Mutant:
        text = (ROOT / self.file).read_text(encoding="utf-8")
        assert text.count(self.old) == 1, f"{self.file} has not one place for {self.name!r}"
        return Mutant(self.file, text.replace(self.old, self.new), self.tests)


_REGISTRY = ("mccompile/kernels/registry.py", ("tests/kernels/test_registry.py",))
_IN_PLACE = (
    "mccompile/passes/memory/in_place.py",
    ("tests/passes/program/test_bufferize.py", "tests/passes/memory/test_sharing.py"),
)
_CONV = ("mccompile/kinds/conv.py", ("tests/kinds",))
_QUANT = ("runtime_c/include/mcc_quant.h", ("tests/runtime_c/test_quant.py",))
_ALIKE = ("mccompile/emit/alike_functions.py", ("tests/emit/test_alike_functions.py",))


def _named(name: str, where: tuple[str, tuple[str, ...]], old: str, new: str) -> Named:
    return Named(name, where[0], old, new, where[1])


NAMED = (
    _named(
        "a byte counts the same whatever is preferred",
        _REGISTRY,
        "[target.prefer]",
        '["time"]',
    ),
    _named("equal kernels in any order", _REGISTRY, "dict(sorted(paths.items()))", "dict(paths.items())"),
    _named("bytes of the blob cost nothing", _REGISTRY, "(cost.code + cost.blob)", "cost.code"),
    _named(
        "an identity without facts",
        ("mccompile/emit/blob.py", ("tests/emit/test_blob.py",)),
        'sha.update(f"fact:{fact}\\n".encode())',
        "pass",
    ),
    _named("halves up", _QUANT, "(bits - 1)) - 1u) + odd) >> 32)", "(bits - 1)) + 0u * odd) >> 32)"),
    _named("a step of Newton's less", _QUANT, "step < 4", "step < 3"),
    _named("over what is too small", _IN_PLACE, "or start + buffer.max_bytes > base.max_bytes", ""),
    _named(
        "over what is alive already",
        _IN_PLACE,
        "and accesses[buffer].first >= now",
        "",
    ),
    _named(
        "a slice of an expression that counts positions",
        ("mccompile/passes/program/select_kernels.py", ("tests/passes/program/test_select_kernels.py",)),
        "if call.kind.counts_places(axis):",
        "if False:",
    ),
    _named("all of x for a part of a convolution", _CONV, "((box[0], channels, *space)", "(whole(x)"),
    _named("all of w for a part of a convolution", _CONV, "(box[1], *whole(w)[1:])", "whole(w)"),
    _named(
        "a literal of INT64_C from a table",
        ("mccompile/base/marked.py", ("tests/base/test_marked.py",)),
        "if kind == _SIZE:",
        "if piece.isdecimal():",
    ),
    _named("a table's numbers of 16 bits without a sign", _ALIKE, "(1 << 15) - 1", "(1 << 16) - 1"),
)
