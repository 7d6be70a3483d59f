"""Programs for two memories really copy tensors."""

from __future__ import annotations

import numpy as np
import pytest

from mccompile.driver import Options, compile_graph
from mccompile.emit.traffic import transfers
from mccompile.frontend.load import load_proto
from mccompile.targets.api import Pool
from tests.fuzz import rooms
from tests.fuzz.subject import Subject
from tests.small_quantized import convolutions

MEM = (Pool("dtcm", None, 0), Pool("sram", 1 << 20, 1, copied=True, rate=80))


@pytest.mark.parametrize("seed", range(3))
def test_the_near_memory_is_too_small_for_all_tensors(seed: int) -> None:
    model = convolutions(12, [(8, 3, 1), (0, 3, 1), (16, 1, 1)])
    drawn = rooms.tight(np.random.default_rng(seed), Subject(model, ()), Options(mem=MEM))
    package = compile_graph(load_proto(model, None), drawn, "drawn")
    assert transfers(package.plan)["sram"]["traffic_bytes"] > 0


@pytest.mark.parametrize("seed", [48])  # the room that is drawn first has copies, but none on their way
def test_copies_are_on_their_way_while_steps_run_where_a_room_allows_it(seed: int) -> None:
    model = convolutions(12, [(8, 3, 1), (0, 3, 1), (16, 1, 1)])
    drawn = rooms.tight(np.random.default_rng(seed), Subject(model, ()), Options(mem=MEM))
    package = compile_graph(load_proto(model, None), drawn, "drawn")
    assert transfers(package.plan)["sram"]["overlapped_bytes"] > 0


def test_other_memories_stay_as_they_are() -> None:
    options = Options(mem=(Pool("dtcm", 64, 0), Pool("sram", 4096, 1)))
    assert rooms.tight(np.random.default_rng(0), Subject(convolutions(6, [(4, 3, 1)]), ()), options) is options
