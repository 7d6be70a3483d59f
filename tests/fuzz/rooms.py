"""How large the near one of two memories is: so small that something has to be copied, where a plan does that, and
large enough that copies are on their way while steps run, where one does."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from mccompile.driver import Options, compile_graph
from mccompile.emit.package import Package
from mccompile.emit.traffic import transfers
from mccompile.frontend.load import load_proto

from .subject import Subject
from .trial import COMPILE_SECONDS, limited

PLANS = 7  # that are made of a subject


def tight(chance: np.random.Generator, subject: Subject, options: Options) -> Options:
    """Where a memory is `copied`: the near one gets a part of what the smallest plan takes, less where nothing is
    copied, and more where it is too small, or where no copy is on its way while steps run."""
    if not any(pool.copied for pool in options.mem):
        return options
    plain = _compiled(subject, replace(options, mem=(), prefer="ram"))
    if plain is None:  # refused with two memories as well
        return options
    few, many = 0, plain.plan.arena_bytes
    copying, fitting = list[Options](), list[Options]()
    room = max(16, int(many * chance.uniform(0.3, 0.95)))
    for _ in range(PLANS):
        drawn = replace(options, mem=tuple(pool if pool.copied else replace(pool, bytes=room) for pool in options.mem))
        package = _compiled(subject, drawn)
        moved = [] if package is None else list(transfers(package.plan).values())
        if any(each["overlapped_bytes"] for each in moved):
            return drawn
        if any(each["traffic_bytes"] for each in moved):
            copying.append(drawn)
            few = room
        elif package is not None:
            fitting.append(drawn)
            many = room
        else:
            few = room
        room = (few + many) // 2
    return [*copying, *fitting, drawn][0]


def _compiled(subject: Subject, options: Options) -> Package | None:
    """What comes out; a trial says what is wrong where that is not to be refused."""
    with suppress(Exception), limited(COMPILE_SECONDS):
        graph = load_proto(subject.model, None, options.dims, options.shapes, bounds=options.bounds)
        return compile_graph(graph, replace(options, tuned=None), "room")
    return None
