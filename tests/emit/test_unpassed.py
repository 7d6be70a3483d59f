"""Functions are not given operands that they do not read."""

from __future__ import annotations

from mccompile.base.marked import plain
from mccompile.emit.kernels import signature
from mccompile.kernels.registry import Registry
from mccompile.targets import api as targets
from tests.kernels.harness import trials


def test_numbers_in_one_table_are_passed_once() -> None:
    kernel = Registry.load()["conv/i8_nhwc_depthwise__dsp"]
    function = trials(kernel, targets.load("cortex-m4"))[0].function
    names = [parameter.split("RESTRICT ")[-1] for parameter in plain(signature(function)).rstrip(")").split(", ")]
    assert "table" in names and not {"table1", "table2"}.intersection(names)
