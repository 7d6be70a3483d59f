"""`mccompile tokenizer`: text to tokens and back, for what stands around a language model."""

from __future__ import annotations

from pathlib import Path

import click

from .commands import commands
from .options import force_flag, output_option


@commands.command()
@click.argument("source", metavar="FOLDER", type=click.Path(path_type=Path))
@output_option
@click.option("--target", default="generic", show_default=True, help="A target's name or TOML file.")
@click.option("--name", default="tokenizer", show_default=True, help="Prefix in C.")
@force_flag
def tokenizer(source: Path, output: Path, target: str, name: str, force: bool) -> None:
    """Write a tokenizer as a small library of C.

    The library splits text into tokens for a language model, and turns tokens back into text, one at a time.

    FOLDER has tokenizer.json, as Hugging Face's libraries save it; the file itself may be named too. Supported are byte
    pair encodings over bytes (GPT-2, Llama 3, Qwen) and over characters (Llama 2, Mistral, Gemma).
    """
    from ..tokenizer.library import library

    made = library(source, target, name)
    made.write(output, force)
    told = made.report
    click.echo(f"{output}: {told['tokens']} tokens, {told['merges']} merges, {told['table_bytes']} bytes of tables")
