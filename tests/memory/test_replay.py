from __future__ import annotations

from mccompile.memory.interval import Block, Part, Placement, placement_of
from mccompile.memory.replay import Access, Step, replay

SOURCE = Block("source", (Part(0, 2, 0, 32),))
RESULT = Block("result", (Part(1, 3, 0, 32),))
ALL = [Access(0, 0, 32), Access(1, 0, 32)]
COPY = [
    Step(writes=(ALL[0],), name="input"),
    Step(reads=(ALL[0],), writes=(ALL[1],), name="copy"),
    Step(reads=(ALL[1],), name="output"),
]


def test_a_right_placement_passes() -> None:
    assert replay([SOURCE, RESULT], Placement((0, 32), 64), COPY) == []


def test_a_result_that_lies_over_its_operand_is_found() -> None:
    wrong = replay([SOURCE, RESULT], Placement((0, 16), 48), COPY)
    assert wrong == ["copy overwrites its own operand or result source"]


def test_a_later_read_of_overwritten_bytes_is_found() -> None:
    steps = [COPY[0], Step(writes=(ALL[1],), name="other"), Step(reads=(ALL[0],), name="late")]
    assert replay([SOURCE, RESULT], Placement((0, 0), 32), steps) == ["late reads source, which was overwritten"]


def test_an_in_place_write_is_part_of_the_history_of_its_block() -> None:
    steps = [COPY[0], Step(reads=(ALL[0],), writes=(ALL[0],), name="relu"), Step(reads=(ALL[0],), name="output")]
    assert replay([SOURCE], placement_of([SOURCE], [0]), steps) == []


def test_bytes_that_nobody_wrote_are_found() -> None:
    steps = [Step(writes=(Access(0, 0, 16),)), Step(reads=(ALL[0],), name="sum")]
    assert replay([SOURCE], placement_of([SOURCE], [0]), steps) == ["sum reads bytes of source that were never written"]


def test_two_results_of_one_step_over_each_other_are_found() -> None:
    steps = [Step(writes=(ALL[0], ALL[1]), name="split")]
    assert replay([SOURCE, RESULT], Placement((0, 16), 48), steps) == [
        "split overwrites its own operand or result source"
    ]
