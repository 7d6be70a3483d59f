"""A folder with a tokenizer: header and source, a program that shows what it does, build files, report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import __version__
from ..base.errors import Problem, WrongUse
from ..base.names import c_identifier
from ..base.records import dataclass
from ..emit.building import build_name, cmake_tools, in_report, make_tools
from ..emit.files import Files
from ..emit.folder import with_report, write_folder
from ..emit.prefix import c_prefix
from ..emit.render import TEMPLATES, Source, render, render_c
from ..emit.runtime import runtime_headers
from ..targets.api import load
from . import reading, tables
from .automaton import automaton
from .description import Tokenizer, unsupported
from .regex import NotUnderstood

_HERE = Path(__file__).parent
_LETTER = (  # of a word
    r"[\p{L}\p{M}\p{Nl}\p{Nd}\p{Pc}"
    "\u24b6-\u24e9\U0001f130-\U0001f149\U0001f150-\U0001f169\U0001f170-\U0001f189\u200c\u200d]"
)
_UNKNOWN = 10.0  # how much less likely an unknown character is than any token
_WAY = 4  # words for a byte of a word that is cut by scores: MCC_TOKENS_WAY
_REPLACEMENT = 3  # bytes of what stands for a byte that is not text


@dataclass(frozen=True)
class Library:
    """A tokenizer as files; nothing is on disk until `write`."""

    prefix: str
    report: Mapping[str, Any]
    files: Files

    def write(self, folder: str | Path, force: bool = False) -> Path:
        """Writes the files; gives the folder. Files there that mccompile did not write, or that were edited since, are
        an error; `force` replaces edited ones."""
        write_folder(Path(folder), self.files, force)
        return Path(folder)


def library(path: Path, target: str = "generic", name: str = "tokenizer") -> Library:
    """What `mccompile tokenizer` writes, of a file tokenizer.json or the folder that has it."""
    if c_identifier(name) != name:
        why, fix = "names in C begin with it", f"did you mean --name {c_identifier(name)}?"
        raise WrongUse(Problem(f"{name!r} is not a name in C", "--name", why, fix))
    prefix, build = c_prefix(name), replace(load(target).build, needs="")
    read = reading.read(path)
    try:
        sources, facts = printed(read, prefix)
    except NotUnderstood as error:
        why = f"its pre_tokenizer has a regular expression with {error}"
        raise reading.placed(path, unsupported("its words", why)) from None
    texts = {file: source.text for file, source in sources.items()}
    texts |= runtime_headers(name for source in sources.values() for name in source.includes)
    how: dict[str, Any] = {"prefix": prefix, "N": prefix.upper(), "file_flags": []}
    how |= {"library": build_name(prefix), "program": build_name(prefix), "sources": [f"{prefix}.c"], "carrier": ""}
    texts["Makefile"] = render(TEMPLATES / "Makefile.j2", how | {"tools": make_tools([build])})
    texts["CMakeLists.txt"] = render(TEMPLATES / "CMakeLists.txt.j2", how | {"tools": cmake_tools([build], prefix)})
    report = {"mccompile": __version__, "prefix": prefix, **in_report(build), **facts}
    return Library(prefix, report, with_report({file: text.encode() for file, text in texts.items()}, report))


def printed(of: Tokenizer, prefix: str) -> tuple[dict[str, Source], dict[str, Any]]:
    """Files of C, and facts for a report. Raises NotUnderstood."""
    automata = [automaton(expression) for expression in of.splits]
    found = [*tables.vocabulary(of), *(table for n, each in enumerate(automata) for table in tables.of_split(n, each))]
    letter = automaton(_LETTER) if any(each.alone for each in of.added) else None
    found += tables.of_split("letter", letter) if letter else []
    found += tables.nfc() if of.nfc else []
    facts = {"tokens": tables.count(of), "merges": len(of.merges), "table_bytes": tables.total(found)}
    context: dict[str, Any] = {"prefix": prefix, "P": prefix.upper(), "tables": found, "of": of, **facts}
    context |= {"columns": [each.count for each in automata], "scratch": scratch_words(of)}
    context |= {"sizes": {table.name: len(table.numbers) for table in found}}
    context |= {"added": [sum(each.normalized == wanted for each in of.added) for wanted in (False, True)]}
    context |= {"around": len(of.before) + len(of.behind), "most": _REPLACEMENT * max(map(len, of.texts.values())) + 8}
    context |= {"in_c": _in_c, "letter": letter}
    context |= {"least": repr(float(min(of.scores)) - _UNKNOWN if of.scores else 0.0)}
    names = {f"{prefix}.h": "tokenizer.h.j2", f"{prefix}.c": "tokenizer.c.j2", "main.c": "main.c.j2"}
    return {file: render_c(_HERE / template, context) for file, template in names.items()}, facts


def scratch_words(of: Tokenizer) -> tuple[int, int]:
    """Words that a text takes at most: for each of its bytes, and once."""
    prefix, per_symbol = len(of.spacing.prefix.encode()), 7
    if of.scores and not of.nfc:
        space = max(1, len(of.spacing.space.encode()))
        return _WAY * space + space // 4 + 1, _WAY * (prefix + 1) + prefix + 1
    if of.nfc:
        return 3 * per_symbol + 1, 8
    if not prefix and not of.spacing.space:
        return per_symbol, per_symbol
    return per_symbol + 1, per_symbol * (prefix + 1) + prefix


def _in_c(text: str) -> str:
    return '"' + "".join(f"\\{byte:03o}" for byte in text.encode()) + '"' if text else "NULL"
