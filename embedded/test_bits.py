"""Networks that call nothing of the C library, and quantized ones, have equal bits where the page says so."""

from __future__ import annotations

import pytest

from tests.measure.bits_table import PAGE, PLAIN, TARGETS, letters, on_page


@pytest.mark.parametrize("network", [*PLAIN, "quantized"])
def test_targets_give_equal_bits_where_the_page_says_so(network: str) -> None:
    assert letters(network, TARGETS) == on_page(PAGE.read_text(encoding="utf-8"))[network]
