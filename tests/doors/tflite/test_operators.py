"""Every operator: random cases, compiled to C, give what LiteRT's interpreter gives, integers but for one step.

`python -m tests.doors.tflite.run_cases` runs many more.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")

from mccompile.doors.tflite.api import registry

from .draw import cases
from .run_cases import Batch

_SEEDS = range(6)
# in test_subgraphs.py and test_detection.py, or what has no case of its own
ELSEWHERE = {"ASSIGN_VARIABLE", "CALL_ONCE", "IF", "READ_VARIABLE", "VAR_HANDLE", "WHILE"}
UNTESTED = {
    "BROADCAST_ARGS": "only of constants",
    "DENSIFY": "constants are made dense while they are read",
    "LSTM": "LiteRT has the full kernel of UNIDIRECTIONAL_SEQUENCE_LSTM for it",
    "RANGE": "results of a size that is known only at run time",
    "RNN": "one step of UNIDIRECTIONAL_SEQUENCE_RNN",
    "SPARSE_TO_DENSE": "only of constants",
    "STABLEHLO_COMPOSITE": "a subgraph in its place",
    "UNIQUE": "results of a size that is known only at run time",
    "WHERE": "results of a size that is known only at run time",
}


@pytest.mark.parametrize("name", cases())
def test_an_operator_gives_what_the_interpreter_gives(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCCOMPILE_CACHE", str(tmp_path))
    batch = Batch(name, cases()[name], _SEEDS)
    assert batch.count >= len(_SEEDS) // 2, batch.refused
    assert batch.wrong() == []


def test_every_operator_that_is_written_out_has_cases() -> None:
    assert set(registry()) == {*cases(), *ELSEWHERE, *UNTESTED}
