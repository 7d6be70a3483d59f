"""Which languages have a wrapper of a model, and what it is written by: one module beside this one, with one template.

Invariant: a wrapper says nothing that the model's header does not say; both are filled from the same facts, and the C
files, the blob and the identity are the same with it and without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...base.errors import Problem, WrongUse
from ...base.near import meant
from ..render import TEMPLATES, Source, render_c
from . import cpp


@dataclass(frozen=True)
class Language:
    about: str
    ending: str  # of the file, which is called after the model
    facts: Callable[[Mapping[str, Any]], Mapping[str, Any]]  # more of them, from those of the header


LANGUAGES: Mapping[str, Language] = {
    "cpp": Language("C++: a header with spans and RAII", "hpp", cpp.facts),
}


def check_wrappers(names: Sequence[str]) -> None:
    for name in names:
        if name not in LANGUAGES:
            why = f"there are {', '.join(LANGUAGES)}"
            fix = meant(name, LANGUAGES, "--wrapper")
            raise WrongUse(Problem(f"there is no wrapper for {name!r}", "--wrapper", why, fix))


def wrapper_files(names: Sequence[str], context: Mapping[str, Any]) -> dict[str, Source]:
    """`context`: what the templates of a model are told."""
    return {
        f"{context['prefix']}.{LANGUAGES[name].ending}": render_c(
            TEMPLATES / f"model.{LANGUAGES[name].ending}.j2", {**context, **LANGUAGES[name].facts(context)}
        )
        for name in names
    }
