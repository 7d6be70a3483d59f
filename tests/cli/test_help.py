"""Help fits one screen, --help-all has everything, and examples are command lines."""

from __future__ import annotations

import shlex
from dataclasses import fields

import click
import pytest

from mccompile import cli
from mccompile.base.errors import Exit
from mccompile.cli.commands import commands
from mccompile.cli.help import COMMANDS, FEATURES, OPTIONS, Group
from mccompile.cli.options import OPTIONS as OPTIONS_OF_MODELS
from mccompile.cli.options import model_options
from mccompile.importers.audio.recipe import Recipe

SCREEN = 40
EVERY = commands.commands


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.run(list(arguments)) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", ["", *EVERY])
def test_help_fits_one_screen(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, *([name] if name else []), "--help").splitlines()
    assert len(lines) <= SCREEN and max(map(len, lines)) <= 80


def test_no_command_at_all_is_wrong_use_and_shows_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([]) == Exit.WRONG_USE
    assert capsys.readouterr().out == printed(capsys, "--help")


def test_help_shows_a_line_for_what_is_common(capsys: pytest.CaptureFixture[str]) -> None:
    said = printed(capsys, "compile", "--help")
    assert "Sizes, such as --dim batch=1,time=1..64:\n  --dim NAME=SIZE,...       Sizes of free dimensions" in said
    assert "--winograd" not in said and "--help-all" in said


def test_help_all_shows_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    said = printed(capsys, "compile", "--help-all")
    for param in EVERY["compile"].params:
        assert isinstance(param, click.Argument) or param.opts[0] in said
    assert "errors near 2e-6 of the largest result" in " ".join(said.split())


def test_every_option_of_a_model_is_in_one_group() -> None:
    @click.command()
    @model_options
    def nothing(options: object) -> None: ...

    names = sorted(name for group in OPTIONS for name in (*group.common, *group.others))
    own = {"output", "layout", "force", "explain", "pages", "executor", "serial", "baud", "flash"}
    own |= {"cc", "update_golden", "bitwise"}
    assert len(OPTIONS_OF_MODELS) == len(nothing.params)
    assert names == sorted({str(param.name) for param in nothing.params} | own)
    assert sorted(name for kind in COMMANDS for name in kind.common) == sorted(EVERY)


@pytest.mark.parametrize("group", OPTIONS, ids=lambda group: group.title)
def test_an_example_of_options_can_be_parsed(group: Group) -> None:
    arguments = ["kws.onnx", "-o", "out", *shlex.split(group.example)]
    assert EVERY["compile"].make_context("compile", arguments).params["models"]


@pytest.mark.parametrize("group", FEATURES, ids=lambda group: group.title)
def test_an_example_of_features_can_be_parsed(group: Group) -> None:
    assert EVERY["frontend"].make_context("frontend", ["-o", "f.onnx", *shlex.split(group.example)]).params


def test_every_setting_of_features_is_in_one_group() -> None:
    names = [name for group in FEATURES for name in (*group.common, *group.others)]
    assert sorted(names) == sorted(field.name for field in fields(Recipe))


@pytest.mark.parametrize("kind", COMMANDS, ids=lambda kind: kind.title)
def test_an_example_of_commands_can_be_parsed(kind: Group) -> None:
    words = shlex.split(kind.example)[1:]
    name = words[0] if words[0] in EVERY else "compile"
    assert EVERY[name].make_context(name, words[words[0] in EVERY :])


@pytest.mark.parametrize("words", [["help"], ["help", "check"]])
def test_help_as_a_word(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, *words).startswith("Usage: mccompile")


def test_the_bare_command_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([]) == 2
    said = capsys.readouterr()
    assert said.out.startswith("Usage: mccompile") and "error" not in said.out + said.err
