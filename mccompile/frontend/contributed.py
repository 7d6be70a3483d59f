"""Operators of other domains than ONNX's, one file of `contrib/` each: a function that writes the operator out as ONNX
operators, and examples of it, which enter the tests by themselves."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ..base.discovery import import_package_modules
from ..base.errors import InternalError
from ..base.records import dataclass
from .composed_body import CONTRIB, Body

Writer = Callable[[Body], None]


@dataclass(frozen=True)
class Contributed:
    write: Writer
    examples: tuple[str, ...]  # graphs in ONNX's text form


_KNOWN: dict[tuple[str, str], Contributed] = {}


def writes(name: str, *examples: str, domain: str = CONTRIB) -> Callable[[Writer], Writer]:
    """For a function that writes an operator out. An example is a graph in ONNX's text form, for onnxruntime to run."""

    def register(write: Writer) -> Writer:
        if not examples:
            raise InternalError(f"{domain}::{name} has no example")
        if (domain, name) in _KNOWN:
            other = _KNOWN[domain, name].write
            raise InternalError(f"{domain}::{name} has two decompositions: {other.__module__} does it already")
        _KNOWN[domain, name] = Contributed(write, examples)
        return write

    return register


@cache
def contributed() -> dict[tuple[str, str], Contributed]:
    import_package_modules("mccompile.frontend.contrib")
    return dict(_KNOWN)
