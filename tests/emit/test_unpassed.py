"""Functions are not given operands that they do not read."""

from __future__ import annotations

import re

import pytest

from mccompile.base.marked import plain
from mccompile.driver import Options
from mccompile.emit.kernels import printed, signature
from mccompile.kernels.registry import Registry
from mccompile.targets import api as targets
from tests.kernels.harness import trials
from tests.small_models import compiled
from tests.small_quantized import convolutions


def test_numbers_in_one_table_are_passed_once() -> None:
    kernel = Registry.load()["conv/i8_nhwc_depthwise_3x3__dsp"]
    function = trials(kernel, targets.load("cortex-m4"))[0].function
    names = [parameter.split("RESTRICT ")[-1] for parameter in plain(signature(function)).rstrip(")").split(", ")]
    assert "table" in names and not {"table1", "table2"}.intersection(names)


def test_what_no_line_reads_is_no_parameter() -> None:
    """Zero points of weights that are packed into the sums."""
    kernel, target = Registry.load()["gemm/i8_rows_tile__dot"], targets.load("x86-64-v3")
    functions = [trial.function for trial in trials(kernel, target)]
    unread = [function.unpassed for function in functions]
    assert any(unread)
    for function, names in zip(functions, unread, strict=True):
        text = plain(printed(function).text)
        assert not any(f"(void){name};" in text or f" {name}[" in text for name in names)


def test_a_zero_point_is_passed_where_windows_reach_beyond_the_image() -> None:
    kernel, target = Registry.load()["conv/i8_nhwc_im2col__scalar"], targets.load("cortex-m0")
    found = [trial.function for trial in trials(kernel, target)]
    functions = [function for function in found if "x_zero" in kernel.parameter_names(function.call)[1]]
    texts = [plain(printed(function).text) for function in functions]
    given = ["x_zero" in plain(signature(function)) for function in functions]
    assert set(given) == {True, False}
    assert given == ["x_zero[0]" in text for text in texts]
    assert not any("(void)x_zero" in text for text in texts)


@pytest.mark.parametrize("target", ["generic", "cortex-m4"])
def test_comments_list_what_functions_are_given(target: str) -> None:
    """A bias has one element for each channel, and there is no type for what is not a parameter."""
    made = convolutions(9, [(8, 3, 1), (0, 3, 1)])
    files = compiled(made, Options(target=target)).files
    text = files["convolutions_kernels.c"].decode()
    found = re.findall(r"^ \* (y .*?)\n \* for .*?^void \w+\((.*?)\)$", text, re.MULTILINE | re.DOTALL)
    assert found
    for comment, parameters in found:
        named = [each.split()[0] for each in re.sub(r"\n \*", "", comment).split(", ")]
        assert named == [name for name in re.findall(r"(\w+)(?:,|$)", parameters) if name not in ("begin", "end")]
    assert "[1,8,1,1]" in text and "[1,8,1,1]" in files["convolutions.c"].decode()
