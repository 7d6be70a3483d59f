"""Chat templates in Jinja, rendered as `transformers` renders them. Besides `emit/` the only user of jinja2.

Invariant: a template is a stranger's program. It runs in Jinja's sandbox, with counted calls, short ranges and no large
products, so that it ends soon and reaches nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from .pieces import marked

_MOST_CALLS, _MOST_RANGE, _MOST_TEXT, _MOST_DEPTH = 20_000, 200, 200_000, 3
_MOST_WORDS, _LONGEST_WORD = 300, 100
Message = Mapping[str, str]


class Render(Protocol):
    def __call__(self, messages: Sequence[Message], date: Callable[[str], str] = ...) -> str: ...


class Refused(Exception):
    """Why a template, or what it was asked for, cannot be rendered."""


class _RaisedByTemplate(jinja2.TemplateError):
    """What a template says by raise_exception."""


class _Generation(Extension):
    """`{% generation %}` marks what a model says; it changes no text."""

    tags = {"generation"}  # noqa: RUF012 - Jinja reads it so

    def parse(self, parser: Parser) -> list[jinja2.nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(["*", "**"])
    calls = 0

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        small = all(isinstance(each, int | float) and abs(each) < 1 << 20 for each in (left, right))
        if operator == "**" or not small:
            raise jinja2.TemplateRuntimeError(f"the operator {operator} on a value that is not a small number")
        return left * right

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        __self.calls += 1
        if __self.calls > _MOST_CALLS:
            raise jinja2.TemplateRuntimeError("it does not end")
        return super().call(__context, __obj, *args, **kwargs)


def _raise(message: object = "") -> NoReturn:
    raise _RaisedByTemplate(str(message)[:200])


def _range(*bounds: int) -> range:
    found = range(*bounds)
    if len(found) > _MOST_RANGE:
        raise jinja2.TemplateRuntimeError(f"a range of {len(found)}")
    return found


def _json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **how: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **how)


def renderer(template: str, tokens: Mapping[str, str]) -> tuple[Render, list[str], list[str]]:
    """What makes text of messages, with the begin of an answer behind them; the words that the template itself has; and
    those of them that are compared with something, or given to a call. Raises Refused, and so does what it gives."""
    environment = _Environment(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols])
    environment.filters["tojson"] = _json
    environment.globals |= {"raise_exception": _raise, "range": _range}
    if len(template) > _MOST_TEXT:
        raise Refused(f"it has {len(template)} characters")
    try:
        parsed = environment.parse(template)
        if _depth(parsed) > _MOST_DEPTH:
            raise Refused(f"more than {_MOST_DEPTH} loops inside of each other")
        made = environment.from_string(template)
    except (jinja2.TemplateError, RecursionError, ValueError) as error:
        raise Refused(f"it is not Jinja: {error}"[:300]) from None

    def render(messages: Sequence[Message], date: Callable[[str], str] = marked) -> str:
        environment.calls = 0
        environment.globals["strftime_now"] = date
        told: dict[str, Any] = {"tools": None, "documents": None, "add_generation_prompt": True, **tokens}
        try:
            text = made.render(messages=[dict(message) for message in messages], **told)
        except _RaisedByTemplate as error:
            raise Refused(str(error)) from None
        except Exception as error:  # whatever a stranger's program raises
            raise Refused(f"{type(error).__name__}: {error}"[:300]) from None
        if len(text) > _MOST_TEXT:
            raise Refused(f"it makes {len(text)} characters")
        return text

    nodes = jinja2.nodes
    return render, _words([parsed]), _words(parsed.find_all((nodes.Compare, nodes.Call, nodes.Filter, nodes.Test)))


def _words(inside: Iterable[jinja2.nodes.Node]) -> list[str]:
    """Texts that a template may look for in what is said."""
    consts = (node for each in inside for node in each.find_all(jinja2.nodes.Const))
    found = dict.fromkeys(node.value for node in consts if isinstance(node.value, str))
    return [word for word in found if word.strip() and len(word) <= _LONGEST_WORD][:_MOST_WORDS]


def _depth(node: jinja2.nodes.Node) -> int:
    """Loops inside of each other."""
    inner = max((_depth(child) for child in node.iter_child_nodes()), default=0)
    return inner + isinstance(node, jinja2.nodes.For)
