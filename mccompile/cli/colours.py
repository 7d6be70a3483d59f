"""Colours of errors, warnings and verdicts: the word that a line begins with.

Invariant: text without its colours is the text; click leaves them out where there is no terminal. NO_COLOR (of any
value, see no-color.org) and TERM=dumb leave them out everywhere.
"""

from __future__ import annotations

import os
import re
from typing import Any

import click

_RED: dict[str, Any] = {"fg": "red", "bold": True}
_STYLES: dict[str, dict[str, Any]] = {
    "error:": _RED,
    "WRONG": _RED,
    "warning:": {"fg": "yellow", "bold": True},
    "near": {"fg": "yellow"},
    "differ": {"fg": "yellow"},
    "ok": {"fg": "green"},
    "  fix": {"fg": "green"},
    "  why": {"bold": True},
    "  where": {"bold": True},
}
_WORDS = re.compile(rf"^({'|'.join(map(re.escape, _STYLES))})(?= )", re.MULTILINE)


def coloured(text: str) -> str:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return _WORDS.sub(lambda found: click.style(found[0], **_STYLES[found[0]]), text)
