"""`mccompile llm`: a language model as one C program, text in and text out."""

from __future__ import annotations

from pathlib import Path

import click

from .commands import commands
from .options import force_flag, output_option, understood


@commands.command()
@click.argument("source", metavar="FOLDER|FILE.gguf", type=click.Path(path_type=Path))
@output_option
@click.option(
    "--dim", "dims", multiple=True, metavar="past=0..1008,tokens=1..16", help="Context length; tokens per run."
)
@click.option("--target", default="generic", show_default=True, help="A target's name or TOML file.")
@click.option("--name", default="", help="Prefix in C.")
@click.option("--cache-dtype", type=click.Choice(["f32", "f16", "int8"]), default="f32", help="Keys and values.")
@click.option("--chat", type=click.Choice(["auto", "none"]), default="auto", help="The chat template of the model.")
@force_flag
def llm(
    source: Path,
    output: Path,
    dims: tuple[str, ...],
    target: str,
    name: str,
    cache_dtype: str,
    chat: str,
    force: bool,
) -> None:
    """Write a language model as a C program: tokenizer, network and sampler.

    FOLDER has tokenizer.json, and the network as Hugging Face's libraries save it (safetensors), or as optimum or
    onnxruntime-genai export it (ONNX); a GGUF file contains its tokenizer. The weights are mapped by the program,
    and the caller provides the memory.
    """
    from .. import option_texts
    from ..driver import Options
    from ..llm.program import program
    from ..passes.api import CacheDtype

    sizes = understood("--dim", option_texts.dims, dims)
    cache = "" if cache_dtype == "f32" else cache_dtype
    options = Options(target=target, name=name, dims=sizes, cache_dtype=CacheDtype(cache))
    made = program(source, options, chat == "auto")
    made.write(output, force)
    told = made.report["language"]
    runs = f"{told['batch']} in a run" if told["batch"] > 1 else "one by one, as tokens are not a free size"
    chats = ", with its chat template" if told["chats"] else ""
    chats += " (no system message)" if told["chats"] and not told["systems"] else ""
    click.echo(f"{output}: {told['tokens']} tokens, room for {told['context']}, a prompt {runs}{chats}")
    kept = f"{told['cache_bytes']} of them the cache"
    click.echo(
        f"arena {made.report['arena_bytes']} bytes, {kept}, weights {made.report['weights_bytes']} bytes, mapped"
    )
