"""The commands that list what there is: operators and targets."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ..base.errors import Problem, WrongUse
from ..base.meanings import ours
from ..base.near import meant
from .commands import commands
from .options import json_flag
from .told import tell

if TYPE_CHECKING:
    from ..targets.api import Target


@commands.command()
@click.argument("name", required=False)
@json_flag
def ops(name: str | None, as_json: bool) -> None:
    """List the operators that can be compiled, or explain one."""
    from ..emit.summary import table
    from ..frontend.supported import supported

    if name is None and as_json:
        found = supported().items()
        tell("ops", {"operators": [_operator(title, versions, not versions) for title, versions in found]})
    elif name is None:
        rows = [[title, ", ".join(map(str, n)) or "by decomposition"] for title, n in supported().items()]
        click.echo("\n".join(table(["operator", "versions"], rows, frozenset({0, 1}))))
    else:
        _explain(name, as_json)


def _explain(name: str, as_json: bool) -> None:
    from ..frontend.supported import supported
    from ..ops.api import registry

    known = {_qualified(cls): cls for cls in registry().values()}
    title = _titled(name, [*known, *supported()])
    found = known.get(title)
    if found is None and title not in supported():
        close = "" if "ops" in ours(name) else meant(name, [*known, *supported()])
        fix = close or "`mccompile ops` lists those that are"
        raise WrongUse(
            Problem(f"operator {name!r} is not supported", "mccompile ops", "no such operator can be compiled", fix)
        )
    documentation = (found.__doc__ or "").strip() if found else ""
    if found and documentation.startswith(f"{found.__name__}("):  # dataclasses write one if there is none
        documentation = ""
    attributes = [_attribute(field) for field in dataclasses.fields(found)] if found else []
    if as_json:
        told = _operator(title, found.versions if found else (), found is None)
        tell("ops", {"operators": [{**told, "documentation": documentation, "attributes": attributes}]})
    elif found is None:
        click.echo(f"{title}  decomposed into other operators while a model is read")
    else:
        click.echo(f"{title}  versions {', '.join(map(str, found.versions))}")
        click.echo(f"{documentation}\n" if documentation else "", nl=False)
        for each in attributes:
            default = f"default {each['default']}" if "default" in each else "must be given"
            click.echo(f"  {each['name']}: {each['type']}, {default}")


def _operator(title: str, versions: Sequence[int], decomposed: bool) -> dict[str, Any]:
    return {"operator": title, "versions": list(versions), "decomposed": decomposed}


def _attribute(field: dataclasses.Field[Any]) -> dict[str, str]:
    given = field.default_factory() if callable(field.default_factory) else field.default
    default = {} if given is dataclasses.MISSING else {"default": repr(given)}
    return {"name": field.name, "type": str(field.type), **default}


def _titled(name: str, titles: Sequence[str]) -> str:
    """The one that is meant, whatever its case; of any domain, where the name has none."""
    wanted = name.lower()
    whole = (title for title in titles if title.lower() == wanted)
    return next(whole, next((title for title in titles if title.lower().split("::")[-1] == wanted), name))


def _qualified(cls: type[Any]) -> str:
    return f"{cls.domain}::{cls.name}" if cls.domain else str(cls.name)


@commands.command()
@json_flag
def targets(as_json: bool) -> None:
    """List the targets."""
    from ..emit.summary import table
    from ..targets import api

    found = [api.load(name) for name in api.names()]
    if as_json:
        tell("targets", {"targets": [_target(each) for each in found]})
        return
    rows = [[t.name, t.prefer, " ".join(t.isas), t.description] for t in found]
    click.echo("\n".join(table(["target", "prefers", "kernels", ""], rows, frozenset({0, 1, 2, 3}))))


def _target(target: Target) -> dict[str, Any]:
    return {
        "target": target.name,
        "prefers": str(target.prefer),
        "kernels": list(target.isas),
        "description": target.description,
        "flags": list(target.cflags),
        "emulator": bool(target.run),
    }
