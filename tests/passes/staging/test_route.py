"""Bytes that are copied between two memories, and the least that any plan copies."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from onnx import ModelProto

from mccompile.base.errors import CheckFailed
from mccompile.emit.traffic import transfers
from mccompile.passes.program import bring_tensors
from mccompile.passes.staging.route import MemoryLimits, Path, Router
from mccompile.targets.api import Pool
from tests.passes.graph.tile_columns.test_tile_columns import package, with_weights

SIZES = (3, 3, 1)  # of windows


def chain(seed: int, layers: int) -> ModelProto:
    """Of convolutions with few channels."""
    chance = np.random.default_rng(seed)
    channels, height, width = int(chance.choice([2, 4, 8])), int(chance.choice([16, 24, 32])), 8
    inputs, body = f"float[1,{channels},{height},{width}] x0", ""
    for n, size in enumerate(SIZES[:layers]):
        made, stride = int(chance.choice([2, 4, 8])), int(chance.choice([1, 2]))
        inputs += f", float[{made},{channels},{size},{size}] w{n}"
        result = "y" if n == layers - 1 else f"x{n + 1}"
        pads = [size // 2] * 4
        body += f"{result} = Conv <pads = {pads}, strides = [{stride}, {stride}]> (x{n}, w{n})\n"
        channels, height, width = made, -(-height // stride), -(-width // stride)
    return with_weights(f"({inputs}) => (float[1,{channels},{height},{width}] y) {{ {body} }}", seed)


def compiled(made: ModelProto, part: float) -> dict[str, int] | None:
    """What is copied where so large a part of all that is needed is near. None: nothing fits."""
    whole = package(made).plan.arena_bytes
    try:
        found = package(made, mem=(Pool("near", int(whole * part), 0), Pool("away", None, 1, copied=True)))
    except CheckFailed:
        return None
    return transfers(found.plan)["away"]


@pytest.mark.thorough
def test_chains_copy_the_least_or_say_by_how_much_more() -> None:
    found = [compiled(chain(seed, 3), 0.7 if seed % 2 else 0.4) for seed in range(50)]
    fit = [each for each in found if each is not None]
    above = [each["traffic_bytes"] - each["traffic_bound_bytes"] for each in fit]
    assert len(fit) > 45 and min(above) == 0
    assert above.count(0) >= len(fit) - 5


class Exhaustive(Router):
    """Also tries all ways, with places for all tensors."""

    told: tuple[int, int | None]

    def bound(self, room: MemoryLimits, found: int) -> int | None:
        least = min(
            (path.cost for path in self.ways(Path(), 0) if path.cost < found and self.fits(path)), default=found
        )
        Exhaustive.told = least, super().bound(room, found)
        return Exhaustive.told[1]

    def ways(self, path: Path, first: int) -> Iterator[Path]:
        program, alive = self.tensors.program, self.tensors.alive
        if first == len(program.body):
            yield path
            return
        for far in self._subsets(self.tensors.inputs) if first == 0 else [path.far & {*alive[first]}]:
            for last in range(first, len(program.body)):
                for step, results in self._steps(first, last, far):
                    segment = self.segments.get(step.first, step.last, step.far, step.by_rows)
                    if segment is not None:
                        steps, away = (*path.steps, step), path.far | far | results
                        yield from self.ways(Path(path.cost + segment.copied, 0, steps, away), last + 1)

    def fits(self, path: Path) -> bool:
        memory = self.context.memory
        sizes = bring_tensors._sizes(bring_tensors._draft(self.tensors.program, path, self.segments), 1, self.context)
        return all(may is None or has <= may for has, may in zip(sizes, (memory.near, memory.far), strict=True))


@pytest.mark.parametrize("seed", range(6))
def test_no_way_copies_less_than_the_bound(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bring_tensors, "Router", Exhaustive)
    found = compiled(chain(seed, 2), 0.6)
    assert found is not None
    least, bound = Exhaustive.told
    assert bound is not None and bound <= least == found["traffic_bytes"]
