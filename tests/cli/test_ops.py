"""`mccompile ops NAME` finds an operator by its name, of whatever domain and case."""

from __future__ import annotations

import pytest

from mccompile import cli


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("conv", "Conv"),
        ("quickgelu", "com.microsoft::QuickGelu"),
        ("com.microsoft::QLinearConv", "com.microsoft::QLinearConv"),
        ("QLinearConv", "QLinearConv"),
    ],
)
def test_an_operator_is_found(name: str, title: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["ops", name]) == 0
    assert capsys.readouterr().out.split()[0] == title


def test_layers_of_other_frameworks_lead_to_operators(capsys: pytest.CaptureFixture[str]) -> None:
    for word, operator in (
        ("relu6", "Clip"),
        ("Conv2d", "Conv"),
        ("dense", "Gemm"),
        ("BatchNorm2d", "BatchNormalization"),
    ):
        assert cli.run(["ops", word]) == 2
        assert f"did you mean {operator}?" in capsys.readouterr().err
