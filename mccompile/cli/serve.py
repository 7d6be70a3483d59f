"""`mccompile serve`: what a program links so that a host checks the model on its board."""

from __future__ import annotations

import json
from pathlib import Path

import click

from .commands import commands


@commands.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--mlperf-tiny",
    "benchmark",
    metavar="kws|ic|ic02|vww|ad|sww",
    help="Answer the runner of MLPerf Tiny instead, as this benchmark: <model>_eembc.",
)
@click.option("--force", is_flag=True, help="Overwrite files in DIR that were edited.")
def serve(folder: Path, benchmark: str | None, force: bool) -> None:
    """Add a server to an output folder, for check, bench, compare and tune with --serial.

    The board's program calls <model>_serve with two functions, which read and write a serial line.
    """
    from ..emit.folder import replace_files
    from ..measure.eembc import eembc_files, with_scales
    from ..measure.serving import server_files
    from ..toolchain.model_report import read_report

    report = read_report(folder)
    if benchmark:
        content = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        files = eembc_files(report, benchmark, with_scales(content))
    else:
        files = server_files(report)
    replace_files(folder, files, force)
    for path, contents in files.items():
        click.echo(f"{folder / path}: {len(contents)} bytes")
