"""What commands tell programs: one JSON object, which names its schema and the version of that.

Invariant: `schemas.json` beside this file has the schemas; a version counts up where programs that read the one before
would read wrong, not where keys are added.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import click


@cache
def schemas() -> dict[str, dict[str, Any]]:
    """By command."""
    found: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("schemas.json").read_text(encoding="utf-8"))
    return found


def tell(command: str, content: Mapping[str, Any]) -> None:
    named = {"schema": schemas()[command]["properties"]["schema"]["const"]} if command in schemas() else {}
    click.echo(json.dumps({**named, **content}, indent=1))
