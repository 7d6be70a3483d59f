"""Pages of the site that follow from code (command line, targets, report), and files that lie outside of docs/.

A hook of mkdocs (mkdocs.yml); nothing of it is written to docs/.
"""

from __future__ import annotations

import inspect
import json
import posixpath
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent
FOLDER = TOP / "mccompile" / "targets"
sys.path.insert(0, str(TOP))

# Files of the project that are pages as they are.
PROJECT = {
    "DESIGN.md": "project/design.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changes.md",
    "runtime_c/SPEC.md": "reference/blob.md",
}
COMMANDS = """# The command line

Made from the commands themselves; `mccompile COMMAND --help` prints the common options, `--help-all` all of them.
`mccompile model.onnx -o out/` is short for `mccompile compile model.onnx -o out/`.

[How they are used](../cli.md), exit codes among that.
"""
BAR = "\\|"  # does not end the cell of a table
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """mkdocs asks which files there are."""
    from mkdocs.structure.files import File

    made = {
        "reference/targets.md": targets(),
        "reference/report.md": report(),
        "reference/command_line.md": command_line(),
    }
    for source, page in PROJECT.items():
        made[page] = moved((TOP / source).read_text(encoding="utf-8"), source, page)
    for page, text in made.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links of pages to files outside of docs/ lead to their pages, or are plain text where there is none."""
    uri = page.file.src_uri
    return markdown if uri in PROJECT.values() else moved(markdown, f"docs/{uri}", uri)


def moved(text: str, source: str, page: str) -> str:
    """The text of a file of the project as a page: its links lead to pages, or are plain text where there is none."""

    def link(found: re.Match[str]) -> str:
        label, to, anchor = found[1], found[2], found[3] or ""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), to))
        if path in PROJECT:
            path = PROJECT[path]
        elif path.startswith("docs/"):
            path = path.removeprefix("docs/")
        else:
            return f"{label} (`{path}`)" if label != path else f"`{path}`"
        return f"[{label}]({posixpath.relpath(path, posixpath.dirname(page) or '.')}{anchor})"

    return _LINK.sub(link, text)


def command_line() -> str:
    """Every command; options that compile, check and others share stand once, at the end, in the groups of --help."""
    import click

    from mccompile.cli.commands import commands
    from mccompile.cli.help import OPTIONS

    def options(command: click.Command) -> dict[str, tuple[str, str]]:
        context = click.Context(command)
        records = {parameter.name or "": parameter.get_help_record(context) for parameter in command.params}
        return {name: record for name, record in records.items() if record is not None and record[1]}

    every = {name: options(command) for name, command in sorted(commands.commands.items())}
    count = Counter(item for own in every.values() for item in own.items())
    shared = {name: record for name, record in every["compile"].items() if count[name, record] > 2}
    lines = [COMMANDS]
    for name, command in sorted(commands.commands.items()):
        usage = command.get_usage(click.Context(command, info_name=f"mccompile {name}")).removeprefix("Usage: ")
        lines += [f"## {name}", "", f"`{' '.join(usage.split())}`", "", inspect.cleandoc(command.help or ""), ""]
        own = [record for option, record in every[name].items() if shared.get(option) != record]
        lines += [*option_table(own), ""] if own else []
        if shared.items() <= every[name].items():
            lines += ["Also all [options of a model](#options-of-a-model).", ""]
    lines += ["## Options of a model", ""]
    for group in OPTIONS:
        found = [shared.pop(option) for option in (*group.common, *group.others) if option in shared]
        lines += (
            [f"### {group.title}", "", f"Such as `{group.example}`.", "", *option_table(found), ""] if found else []
        )
    return "\n".join([*lines, *(["### Others", "", *option_table(shared.values()), ""] if shared else [])])


def option_table(options: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield "| option | what it does |"
    yield "|---|---|"
    for option, text in options:
        yield f"| `{option.replace('|', BAR)}` | {text.replace('|', BAR).replace('<', '&lt;')} |"


def targets() -> str:
    from mccompile.targets import api

    lines = [
        "# Targets",
        "",
        "Made from the TOML files in `mccompile/targets/`. `--target my.toml` takes one of your own, which may inherit "
        "one of these.",
    ]
    for name in api.names():
        target = api.load(name)
        lines += ["", f"## {name}", "", f"{target.description[0].upper()}{target.description[1:]}.", ""]
        if "detect" in tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8")):
            lines += ["Kernels and flags follow from the machine."]  # so nothing of the one that builds the site
            continue
        lines += [f"- kernels: {', '.join(target.isas)}; saves {target.prefer} first"]
        lines += [f"- compiler: `{' '.join([target.compiler, *target.cflags])}`"]
        lines += [f"- `check` and `bench` run programs with: `{target.run}`"] if target.run else []
    return "\n".join(lines) + "\n"


def report() -> str:
    schema = json.loads((TOP / "mccompile" / "emit" / "report.schema.json").read_text(encoding="utf-8"))
    lines = [
        "# The report",
        "",
        f"{schema['title']}. Made from the JSON schema, `mccompile/emit/report.schema.json`.",
        "",
        *table(schema),
    ]
    for name, definition in schema["$defs"].items():
        if "properties" in definition:
            lines += ["", f"## {name}", "", *table(definition)]
    return "\n".join(lines) + "\n"


def table(schema: Mapping[str, Any]) -> Iterator[str]:
    yield "| field | type | what it says |"
    yield "|---|---|---|"
    required = set(schema.get("required", ()))
    for name, field in schema["properties"].items():
        optional = "" if name in required else " (not always there)"
        yield f"| `{name}` | {kind(field)} | {field.get('description', '')}{optional} |"


def kind(field: Mapping[str, Any]) -> str:
    if "$ref" in field:
        name = field["$ref"].rsplit("/", 1)[1]
        return name if name == "count" else f"[{name}](#{name})"
    if field.get("type") == "array":
        return f"array of {kind(field.get('items', {}))}"
    found = field.get("type", "any")
    return found if isinstance(found, str) else " or ".join(found)
