"""The command that lists boards and chips."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..base.errors import WrongUse
from .commands import commands
from .options import json_flag
from .told import tell

if TYPE_CHECKING:
    from ..targets.boards.catalogue import Board

_COLUMNS = ["board", "core", "target", "clock", "ram", "flash", ""]


@commands.command()
@click.argument("words", metavar="[WORD]", nargs=-1)
@json_flag
def boards(words: tuple[str, ...], as_json: bool) -> None:
    """List boards and chips, or those that match a word.

    WORD is a part of a name (`f446`), a chip (`nrf52840`), a family (`stm32g4`) or a core (`m33`). `--board NAME`
    compiles, checks and measures for one of them.
    """
    from ..emit.summary import table
    from ..targets.boards import catalogue

    word = " ".join(words)
    found = catalogue.search(word) if word else list(catalogue.boards().values())
    if not found:
        raise WrongUse(catalogue.unknown(word, "mccompile boards"))
    if as_json:
        tell("boards", {"boards": [_as_dict(board) for board in found]})
        return
    click.echo("\n".join(table(_COLUMNS, list(catalogue.lines(found)), frozenset({0, 1, 2, 6}))))
    notes = {board.core.name: board.core.note for board in found if board.core.note}
    for core, note in notes.items() if word else ():
        click.echo(f"{core}: {note}")


def _as_dict(board: Board) -> dict[str, object]:
    core = board.core
    return {
        "board": board.key,
        "name": board.name,
        "chip": board.chip,
        "core": core.name,
        "target": core.target,
        "fpu": core.fpu,
        "dsp": core.dsp,
        "mhz": board.mhz,
        "ram_bytes": board.ram,
        "flash_bytes": board.flash,
        "also": list(board.also),
        "note": core.note,
    }
