"""`mccompile slots`: what a program includes that takes new weights in the field."""

from __future__ import annotations

from pathlib import Path

import click

from .commands import commands


@commands.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--name", default="", help="The model, if the folder has several.")
@click.option("--force", is_flag=True, help="Overwrite files in DIR that were edited.")
def slots(folder: Path, name: str, force: bool) -> None:
    """Add code for weight updates in the field to a folder: a program keeps weights in two slots of its flash.

    `mccompile blob new.onnx --for DIR --update FILE` writes the updates that such a program takes.
    """
    from ..emit.folder import replace_files
    from ..emit.updates import update_header
    from ..update import read_code

    code = read_code(folder, name)
    blob = folder / code.paths[f"{code.prefix}.mcb"]
    files = update_header(code.prefix, bytes.fromhex(code.identity), blob.stat().st_size)
    replace_files(folder, files, force)
    for path, contents in files.items():
        click.echo(f"{folder / path}: {len(contents)} bytes")
