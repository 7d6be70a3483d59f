"""What a language cannot hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...base.errors import Problem, UnsupportedModel


def kept_inside(context: Mapping[str, Any]) -> str:
    """A fix for a model with inputs or outputs outside of the arena."""
    return "leave out --io external" if context["placed"] else "leave out rows of --input"


def refuse(language: str, model: str, *reasons: tuple[object, str, str]) -> None:
    """Raises for the first of the reasons that holds: whether it does, why that is in the way, and a fix."""
    for holds, why, fix in reasons:
        if holds:
            raise UnsupportedModel(Problem(f"there is no wrapper in {language} for this model", model, why, fix))
