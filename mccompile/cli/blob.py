"""`mccompile blob`: other weights for code that was compiled before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from ..base.errors import Problem, WrongUse
from ..base.writing import cannot_write
from .commands import commands
from .options import model_argument, trust_flag
from .pages import refuse_to_overwrite


@commands.command()
@model_argument
@click.option(
    "--for",
    "folder",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="A folder that mccompile has written.",
)
@click.option("--name", default="", help="The model, if the folder has several.")
@click.option("--force", is_flag=True, help="Also replace files that were edited.")
@click.option(
    "--update",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write an update for slots (`mccompile slots`) instead of replacing weights in DIR.",
)
@click.option(
    "--from",
    "saved",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Take the weights that <model>_save stored on a device, or those of another ONNX file, in place of MODEL's.",
)
@click.option(
    "-o",
    "learned",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write MODEL with the weights of --from as an ONNX file instead of replacing weights in DIR.",
)
@click.option("--version", type=int, default=0, metavar="N", help="Version of the update, which the program reports.")
@click.option(
    "--counter",
    type=int,
    default=0,
    metavar="N",
    help="Counter of the update; programs refuse lower ones.",
)
@click.option("--serial", metavar="PORT", help="Send the weights to the board there, which then uses them.")
@click.option("--baud", default=115200, show_default=True, type=click.IntRange(1), help="Speed of --serial.")
@trust_flag
def blob(
    model: Path,
    folder: Path,
    name: str,
    force: bool,
    update: Path | None,
    version: int,
    counter: int,
    serial: str | None,
    baud: int,
    trust: bool,
    saved: Path | None,
    learned: Path | None,
) -> None:
    """Write a retrained model's weights for compiled code.

    Replaces only the weights in DIR, with the options of DIR/report.json. If the compiled code assumes something that
    does not hold for the new weights, the command says so and writes nothing.
    """
    from ..emit.folder import replace_files
    from ..update import new_blob

    if update is None and (version or counter):
        raise WrongUse(
            Problem(
                "--version and --counter do not go without --update",
                "--version",
                "they number an update",
                "write --update FILE as well",
            )
        )
    if update is not None and serial:
        fix = "write the update, and bring it to the board as its program takes it; or leave out --update"
        raise WrongUse(
            Problem("--update does not go with --serial", "--serial", "a board takes the weights in DIR", fix)
        )
    if learned is not None:
        _write_learned(model, folder, name, trust, saved, learned, update is not None or bool(serial))
        return
    refuse_to_overwrite(update, model, saved, option="--update")
    files, notes = new_blob(model, folder, name, trust, saved)
    if update is None:
        replace_files(folder, files, force)
        written = {folder / path: contents for path, contents in files.items()}
    else:
        written = {update: _update_of(files, update, version, counter)}
    for path, contents in written.items():
        click.echo(f"{path}: {len(contents)} bytes")
    for note in notes:
        click.echo(f"note     {note}; macros in the header still describe the weights that it was compiled with")
    if serial:
        from ..measure.building import sent
        from ..toolchain.serial_line import Port

        click.echo(f"sent     {sent(folder, Port(serial, baud))} bytes to the board at {serial}")


def _write_learned(model: Path, folder: Path, name: str, trust: bool, saved: Path | None, to: Path, also: bool) -> None:
    """`also`: weights are asked for as something else, too."""
    from ..update import learned_model

    if saved is None:
        why = "it writes an ONNX file with the weights that a device saved, and --from FILE names these"
        fix = f"leave out -o {to}: the weights in {folder} are replaced"
        raise WrongUse(Problem("-o does not go without --from", "-o", why, fix))
    if also:
        fix = "run the command twice, once with -o"
        raise WrongUse(
            Problem("-o does not go with --update or --serial", "-o", "an update or a board takes the weights", fix)
        )
    refuse_to_overwrite(to, model, saved)
    names = learned_model(model, folder, name, trust, saved, to)
    click.echo(f"{to}: {model.name} with {', '.join(names)} of {saved.name}")


def _update_of(files: Mapping[str, bytes], to: Path, version: int, counter: int) -> bytes:
    """The blob among these, as an update that is written."""
    from ..emit.updates import update_image

    blob = next(contents for path, contents in files.items() if path.endswith(".mcb"))
    image = update_image(blob, version, counter)
    try:
        to.write_bytes(image)
    except OSError as error:
        raise cannot_write("the update", to, error) from None
    return image
