"""Spellings: the ways in which exporters write the same network.

Invariant: the first spelling of a family is its canonical one; the others have the same inputs and draw the same
weights, so their results are alike and their arenas and numbers of steps can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from mccompile.base.errors import MccError
from mccompile.driver import Options

from .judge import COUNTED_ON, Made, differences, instructions, made, wanted
from .net import Net

Writer = Callable[..., str | Sequence[str]]


@dataclass(frozen=True, eq=False)
class Spelling:
    family: str
    name: str
    write: Writer
    opset: int = 17
    arguments: Mapping[str, Any] = field(default_factory=dict)
    off: int = 0  # by how much integers may differ
    close: float = 3e-5  # how far floats may be off, as a part of the largest
    room: float = 1.02  # arena, as a multiple of the canonical spelling's
    steps: int | None = 0  # how many more it may have; None: they are not compared
    work: float = 1.05  # instructions, as a multiple of the canonical spelling's
    refused: str = ""  # what is said where the model is refused, as it should be
    domains: tuple[str, ...] = ("com.microsoft",)
    unknown: bool = False  # no other runtime has it: its results are those of the canonical spelling
    edit: Callable[[Any], None] | None = None

    def net(self) -> tuple[Net, Any]:
        net = Net(self.opset, self.domains)
        outputs = self.write(net, **self.arguments)
        model = net.model(*([outputs] if isinstance(outputs, str) else outputs))
        if self.edit:
            self.edit(model)
        return net, model

    @cached_property
    def made(self) -> Made:
        net, model = self.net()
        return made(model, net.feeds, Options(dims=net.dims, bounds=net.bounds))

    @cached_property
    def instructions(self) -> int | None:
        net, model = self.net()
        return instructions(model, net.feeds, Options(dims=net.dims, bounds=net.bounds))

    @cached_property
    def wanted(self) -> Mapping[str, np.ndarray]:
        net, model = self.net()
        return net.wanted or wanted(model, net.feeds)


FAMILIES: dict[str, list[Spelling]] = {}


def spelled(family: str, *variants: Mapping[str, Any], **more: Any) -> Callable[[Writer], Writer]:
    """Adds a spelling to a family, or one for each of the arguments."""

    def decorated(write: Writer) -> Writer:
        names = write.__name__.strip("_")
        for arguments in variants or ({},):
            label = ",".join(f"{key}={_short(value)}" for key, value in arguments.items())
            add_spelling(family, f"{names}[{label}]" if label else names, write, arguments, **more)
        return write

    return decorated


def add_spelling(family: str, name: str, write: Writer, arguments: Mapping[str, Any], **more: Any) -> None:
    """Adds a spelling to a family under a name of its own: what a function writes, given these arguments."""
    FAMILIES.setdefault(family, []).append(Spelling(family, name, write, arguments=arguments, **more))


def _short(value: Any) -> str:
    return str(value).replace(" ", "")


def _is_same_network(spelling: Spelling, canonical: Spelling) -> bool:
    """And not a relative, with a mask or of free sizes: it makes the same of the same."""
    (own, _), (usual, _) = spelling.net(), canonical.net()
    if (own.dims, own.bounds) != (usual.dims, usual.bounds) or len(own.feeds) != len(usual.feeds):
        return False
    pairs = [*zip(own.feeds.values(), usual.feeds.values(), strict=True)]
    pairs += zip(spelling.made.results.values(), canonical.made.results.values(), strict=False)
    close = max(1e-5, spelling.off)
    return all(a.shape == b.shape and a.dtype.kind in "biuf" and np.allclose(a, b, 1e-4, close) for a, b in pairs)


def problems(spelling: Spelling, counted: bool = False) -> list[str]:
    """What is wrong with how a spelling is compiled; instructions are compared where they are to be counted."""
    _, model = spelling.net()
    try:
        own = spelling.made
    except MccError as error:
        if spelling.refused and spelling.refused in str(error):
            return []
        return [f"refused: {error}"]
    if spelling.refused:
        return [f"it is compiled, and should be refused: {spelling.refused}"]
    canonical = FAMILIES[spelling.family][0]
    want = canonical.wanted if spelling.unknown else spelling.wanted
    want = dict(zip((output.name for output in model.graph.output), want.values(), strict=False))
    found = differences(own.results, want, spelling.off, spelling.close)
    if canonical is not spelling and not canonical.refused:
        usual = canonical.made
        if own.arena > usual.arena * spelling.room + max(0, own.inputs - usual.inputs):
            found.append(f"its arena has {own.arena} bytes, that of {canonical.name} {usual.arena}")
        if spelling.steps is not None and own.steps > usual.steps + spelling.steps:
            found.append(f"it has {own.steps} steps, {canonical.name} {usual.steps}")
        comparable = counted and _is_same_network(spelling, canonical)
        own_work, work = (spelling.instructions, canonical.instructions) if comparable else (None, None)
        if own_work is not None and work is not None and own_work > work * spelling.work:
            more = own_work / work
            found.append(f"it takes {own_work} instructions on {COUNTED_ON}, {canonical.name} {work}: {more:.2f}")
    return found
