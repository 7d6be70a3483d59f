"""Which languages have a wrapper of a model, and what it is written by: one module beside this one, with one template.

Invariant: a wrapper says nothing that the model's header does not say; both are filled from the same facts, and the C
files, the blob and the identity are the same with it and without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...base.errors import Problem, WrongUse
from ...base.near import meant
from ...base.needless import needless
from ...base.records import dataclass
from ..render import TEMPLATES, Source, render_c
from . import cpp, javascript, micropython, rust


@dataclass(frozen=True)
class Language:
    endings: tuple[str, ...]  # of the files, which are called after the model
    facts: Callable[[Mapping[str, Any]], Mapping[str, Any]]  # more of them, from those of the header
    shared: tuple[str, ...] = ()  # files that are the same for all models
    folder: str = ""  # of a package, for files that no build of C takes along

    def files(self, prefix: str) -> dict[str, str]:
        """Those of a model, and their templates."""
        return {f"{self.folder}{prefix}{ending}": f"model{ending}" for ending in self.endings}


LANGUAGES: Mapping[str, Language] = {
    "cpp": Language((".hpp",), cpp.facts),
    "rust": Language((".rs",), rust.facts, rust.SHARED),
    "javascript": Language((".js", ".d.ts", "_module.c"), javascript.facts, folder="javascript/"),
    "micropython": Language(("_micropython.c",), micropython.facts, folder="micropython/"),
}


def check_wrappers(names: Sequence[str]) -> None:
    for name in names:
        if name not in LANGUAGES:
            why = f"there are {', '.join(LANGUAGES)}"
            own = needless(name, "--wrapper")
            without = f"leave out --wrapper {name}: {own or needless('other', '--wrapper')}"
            fix = without if own else meant(name, LANGUAGES, "--wrapper") or without
            raise WrongUse(Problem(f"there is no wrapper for {name!r}", "--wrapper", why, fix))


def wrapper_files(names: Sequence[str], context: Mapping[str, Any]) -> dict[str, Source]:
    """`context`: what the templates of a model are told."""
    files = {}
    for language in (LANGUAGES[name] for name in names):
        told = {**context, **language.facts(context)}
        own = language.files(context["prefix"])
        for path, template in (own | {path: path for path in language.shared}).items():
            files[path] = render_c(TEMPLATES / f"{template}.j2", told)
    return files
