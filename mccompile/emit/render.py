"""Fills Jinja templates of our own; llm/jinja.py renders those of models.

Templates use `${x}`, line statements `//% for`, comments `//#`, and fail on undefined names; so a template reads as C.
`${include("math.h")}` in front of what needs a header has the function's file include it, `${included("a.h")}` is the
line of a file that includes another one beside it. Long lines are folded, comments between the words of a block under
`//% filter words`.
Macros that several kernels share are imported from files at the top of kernels_templates/, those of other files from
their own folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from ..base import marked
from ..base.dims import Symbolic
from ..base.discovery import data_folder
from ..base.marked import called, including, marked_name, plain, read, sized, unmarked, words
from ..base.records import dataclass
from ..expr.dims_c import operand_c
from .compiled_templates import CompiledTemplates
from .folding import folded
from .runtime import include_line

TEMPLATES = Path(__file__).parent / "templates"


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        variable_start_string="${",
        variable_end_string="}",
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
        finalize=lambda value: operand_c(value) if isinstance(value, Symbolic) else value,
        loader=jinja2.FunctionLoader(_source),
        bytecode_cache=CompiledTemplates([Path(__file__), Path(marked.__file__)]),
        cache_size=-1,
        auto_reload=False,
    )
    environment.globals["called"] = called
    environment.globals["include"] = including
    environment.globals["named"] = marked_name
    environment.globals["part"] = marked.part
    environment.globals["step"] = marked.step
    environment.globals["included"] = lambda header: including(header) + include_line(header)
    environment.filters["words"] = words
    environment.filters["size"] = _size
    environment.filters["term"] = _term
    environment.filters["suffixed"] = lambda text, end: f"{text}{end}"
    return environment


def _size(value: Any) -> Any:
    """A size in C, marked if it is a number; what is C already stays."""
    return sized(value) if isinstance(value, int) else value


def _term(text: str) -> str:
    """C that a sum is added to: in brackets, unless it is a name or a number."""
    return text if plain(text).isidentifier() or plain(text).isdecimal() else f"({text})"


@cache
def _template(path: Path) -> jinja2.Template:
    return _environment().get_template(str(path.absolute()))


def _source(name: str) -> str:
    """A template by its whole path, or a file of macros by its name."""
    own = TEMPLATES / name
    return _text(own if own.is_file() else data_folder("kernels_templates") / name)


def _text(path: Path) -> str:
    # Jinja's own line statements swallow the blank lines that follow them; blocks on a line of their own do not.
    lines = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        begun = line.lstrip(" \t")
        if not begun.startswith("//#"):
            lines.append(f"<%{begun.removeprefix('//%')} %>" if begun.startswith("//%") else line)
    return "\n".join(lines)


def render(path: Path, context: Mapping[str, Any]) -> str:
    return _template(path).render(context).rstrip() + "\n"


@dataclass(frozen=True)
class Source:
    """A file of C, and which files beside it, or headers of the runtime, it includes."""

    text: str
    includes: frozenset[str]


def render_c(path: Path, context: Mapping[str, Any]) -> Source:
    """A whole file of C, whose lines are as they should be but for their length."""
    done = read(render(path, context))
    return Source(folded(done.text), done.headers)


def render_html(path: Path, context: Mapping[str, Any]) -> str:
    """A page; whatever stands in the context is text, and is escaped."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return environment.from_string(path.read_text(encoding="utf-8")).render(context)


def comment(text: str) -> str:
    """Text that may stand in a C comment."""
    return unmarked(text).replace("*/", "* /").replace("/*", "/ *").replace("\\", "/").replace("\n", " ")
