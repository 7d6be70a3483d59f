"""Flags that several commands share, and the `Options` that they become."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from .. import option_table
from ..option_table import Option

Read = TypeVar("Read")
OPTIONS = {option.name: option for option in option_table.options() if option.has_flag}


def flag_of(option: Option) -> Callable[[Any], Any]:
    """An option of the table as click has it. Where nothing is given it is None or empty."""
    entry, more = option.entry, dict[str, Any]()
    if option.type == "bool":
        more["is_flag"] = True
    elif entry.values:
        more["type"] = click.Choice(entry.values)
    elif entry.path or "Path" in option.type:
        more["type"] = click.Path(path_type=Path)
    elif option.type.split(" ")[0] in _NUMBERS and not entry.reads:
        more["type"] = _NUMBERS[option.type.split(" ")[0]]
    if option.default in (*entry.values, "generic", 1) and option.type != "bool":
        more |= {"default": option.default, "show_default": True}
    more["multiple"] = option.type.startswith(("tuple[", "Mapping[", "frozenset[", "Stream"))
    return click.option(option.flag, option.name, metavar=entry.metavar, help=entry.help, **more)


_NUMBERS: Mapping[str, type] = {"int": int, "float": float}
trust_flag = flag_of(OPTIONS["trust"])


output_option = click.option(
    "-o", "output", type=click.Path(path_type=Path), required=True, metavar="DIR", help="The folder to write."
)
destination_option = click.option(
    "-o", "destination", type=click.Path(path_type=Path), required=True, metavar="FILE", help="What to write."
)
force_flag = click.option(
    "--force", is_flag=True, help="Overwrite files in DIR that were edited after mccompile wrote them."
)


def understood(flag: str, reader: Callable[[Any], Read], given: Any) -> Read:
    """What stands behind a flag, read; what cannot be read is told with its flag."""
    try:
        return reader(given)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=flag) from None


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say how a file is read; the command gets them as one argument, `reading`."""

    def given(read: Mapping[str, Any]) -> Any:
        from ..importers.api import Reading

        return Reading(**read)

    return _with(command, [OPTIONS[name] for name in ("signature", "dims", "shapes", "trust")], "reading", given)


def model_options(command: Callable[..., Any], but: str = "") -> Callable[..., Any]:
    """Options that become `Options`; the command gets them as one argument, `options`. `but`: one that it has not."""

    def given(read: Mapping[str, Any]) -> Any:
        from ..driver import Options

        return Options(**read)

    return _with(command, [option for option in OPTIONS.values() if option.name != but], "options", given)


def _with(
    command: Callable[..., Any], options: Sequence[Option], name: str, make: Callable[[Mapping[str, Any]], Any]
) -> Callable[..., Any]:
    """A command with options, which it gets as one argument: what `make` makes of those that were given."""

    def collected(**values: Any) -> Any:
        found = texts_read({option.name: values.pop(option.name) for option in options})
        return command(**{name: make(found)}, **values)

    collected.__doc__, collected.__name__ = command.__doc__, command.__name__
    for option in reversed(options):
        collected = flag_of(option)(collected)
    return collected


def texts_read(values: Mapping[str, Any]) -> dict[str, Any]:
    """Of what was given for options of the table, what it means; other names are left out."""
    from .. import option_texts

    found = {}
    for name, given in values.items():
        option = OPTIONS.get(name)
        if option is None or given in (None, ()):
            continue
        reader = getattr(option_texts, option.entry.reads) if option.entry.reads else lambda text: text
        found[name] = understood(option.flag, reader, given)
    return found


def quantizing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Those of a model for the command that quantizes itself: its samples are --data."""
    return model_options(command, but="quantize")


model_argument = click.argument("model", type=click.Path(path_type=Path))
executor_option = click.option(
    "--executor", default="", metavar="dask://HOST:PORT", help="Run jobs on the workers of dask; default: this machine."
)


def board_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say where a board is; the command gets them as one argument, `port`, which may be None."""

    def collected(serial: str | None, baud: int, flash: str, **values: Any) -> Any:
        from ..base.errors import Problem, WrongUse
        from ..measure.flashing import refuse_unplaced
        from ..toolchain.serial_line import Port

        if flash:
            refuse_unplaced(flash, "--flash", "folder of C files")
        if flash and not serial:
            fix = "say where the board answers: --serial /dev/ttyACM0"
            raise WrongUse(
                Problem("--flash does not go without --serial", "--flash", "the board answers over a serial port", fix)
            )
        return command(port=Port(serial, baud, flash) if serial else None, **values)

    collected.__doc__, collected.__name__ = command.__doc__, command.__name__
    collected.__dict__.update(command.__dict__)
    options = (
        click.option(
            "--serial", metavar="PORT", help="Run on the board at this port: /dev/ttyACM0, COM3 or tcp:HOST:PORT."
        ),
        click.option("--baud", default=115200, show_default=True, type=click.IntRange(1), help="Speed of --serial."),
        click.option(
            "--flash",
            default="",
            metavar="'COMMAND {}'",
            help="Command that flashes each build first: {} is the folder of C files, with the server among them.",
        ),
    )
    for option in reversed(options):
        collected = option(collected)
    return collected


json_flag = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
samples_option = click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="SAMPLES",
    help="Samples: .npz, .npy or test_data_set_* folders. Arrays of an .npz file are named like the inputs.",
)
