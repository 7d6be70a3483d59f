"""mcc.h, which programs read, says of statuses what the list says that everything else is made from."""

from __future__ import annotations

from mccompile.emit.runtime import header_text
from mccompile.emit.statuses import STATUSES, cases_c, enum_c


def test_the_header_has_the_statuses_of_the_list() -> None:
    text = header_text("mcc.h")
    assert f"typedef enum mcc_status {{\n{enum_c()}\n}} mcc_status;" in text, f"write into mcc.h:\n{enum_c()}"
    assert f"switch (status) {{\n{cases_c()}\n    }}" in text, f"write into mcc.h:\n{cases_c()}"


def test_numbers_and_names_are_given_once() -> None:
    assert [status.number for status in STATUSES] == list(range(len(STATUSES)))
    assert len({status.name for status in STATUSES}) == len(STATUSES)
