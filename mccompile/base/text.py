"""The text form of parameters, shared by the printers and parsers of all IRs.

`write` prints a Python value, `Reader` reads it back: numbers, strings, true, false, none, tuples, element types,
symbolic dimensions in braces, enum-free dataclasses as `Name(field=value, ...)` with defaults left out, and `@...` for
scalar expressions (floor 1 supplies their reader). Invariant: reading what was written gives an equal value.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import dims
from .dims import Dim, Symbolic
from .dtypes import DTYPES, DType
from .errors import BadFile, InternalError, Problem

_TOKEN = re.compile(
    r"""\s*(?:\#[ ][^\n]*\n\s*)*(
      "(?:[^"\\]|\\.)*"                                   # string
    | \#\w+                                              # content hash
    | -?(?:inf|nan)\b
    | -?\d+\.?\d*(?:[eE][+-]?\d+)?                        # number
    | [A-Za-z_][\w.]*                                     # word
    | ->|[%@$^()\[\]{}<>,:;=+*/!|&-]
    )""",
    re.VERBOSE,
)


def write(value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return write_float(value)
        case str():
            return json.dumps(value)
        case bytes():
            return json.dumps("bytes:" + value.hex())
        case DType():
            return value.name
        case Symbolic():
            return "{" + str(value) + "}"
        case tuple():
            return (
                "(" + "".join(f"{write(item)}, " for item in value).removesuffix(" " if len(value) == 1 else ", ") + ")"
            )
        case _ if hasattr(value, "expression_text"):
            return f"@{value.expression_text()}"
        case _ if dataclasses.is_dataclass(value):
            return f"{type(value).__name__}({write_fields(value)})"
    raise InternalError(f"no text form for {type(value).__name__}")


def write_float(value: float) -> str:
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    text = repr(value)
    return text if any(c in text for c in ".en") else text + ".0"


def write_fields(value: Any) -> str:
    """The fields of a dataclass that differ from their defaults, as `name=value, ...`."""
    parts = []
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        if field.default is dataclasses.MISSING or not _same(item, field.default):
            parts.append(f"{field.name}={write(item)}")
    return ", ".join(parts)


def _same(a: object, b: object) -> bool:
    return type(a) is type(b) and (a == b or (a != a and b != b))


def branches(condition: str, then: Sequence[str], otherwise: Sequence[str], indent: str) -> list[str]:
    return [f"{indent}if {condition} {{", *then, f"{indent}}} else {{", *otherwise, f"{indent}}}"]


class Reader:
    """A token reader over one text. Errors name the line."""

    def __init__(
        self,
        text: str,
        name: str = "text",
        classes: Mapping[str, type] | None = None,
        expression: Callable[[Reader], object] | None = None,
    ) -> None:
        self.text, self.name = text, name
        self.classes = dict(classes or {})
        self.expression = expression
        self.symbols: dict[str, Dim] = {}
        self.position = 0
        self.token = ""
        self._start = self._end = 0  # of the current token
        self.advance()

    def bounded_symbol(self) -> None:
        """Reads `name in low, high`."""
        symbol = self.word()
        self.expect("in")
        low = self.integer()
        self.expect(",")
        self.symbols[symbol] = dims.symbol(symbol, low, self.integer())

    def value_name(self) -> str:
        """Reads `%name`, which is in quotes where it is not a word."""
        self.expect("%")
        return self.string() if self.token.startswith('"') else self.word()

    def advance(self) -> str:
        """Steps to the next token and returns the one that was current."""
        before = self.token
        self.position = self._end
        match = _TOKEN.match(self.text, self._end)
        if match:
            self.token, self._start, self._end = match.group(1), match.start(1), match.end()
        elif re.fullmatch(r"(\s|# [^\n]*\n?)*", self.text[self._end :]):
            self.token, self._end = "", len(self.text)
        else:
            self.token = self.text[self._end : self._end + 20].strip()
            raise self.error("unreadable text")
        return before

    def error(self, why: str) -> BadFile:
        line = self.text.count("\n", 0, self._end) + 1
        return BadFile(Problem(f"cannot read {self.name}", f"line {line}, at {self.token or 'its end'!r}", why))

    def at(self, token: str) -> bool:
        return self.token == token

    def take(self, token: str) -> bool:
        if self.token == token:
            self.advance()
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.take(token):
            raise self.error(f"expected {token!r}")

    def word(self) -> str:
        if not re.match(r"[A-Za-z_]", self.token):
            raise self.error("expected a word")
        return self.advance()

    def string(self) -> str:
        if not self.token.startswith('"'):
            raise self.error("expected a string")
        return str(json.loads(self.advance()))

    def integer(self) -> int:
        if not re.fullmatch(r"-?\d+", self.token):
            raise self.error("expected an integer")
        return int(self.advance())

    def value(self) -> Any:
        token = self.token
        if token.startswith('"'):
            text = self.string()
            return bytes.fromhex(text[6:]) if text.startswith("bytes:") else text
        if token == "{":
            return self.dim()
        if re.fullmatch(r"-?\d+", token):
            return int(self.advance())
        if re.match(r"-?(\d|inf\b|nan\b)", token):
            return float(self.advance())
        if token == "(":
            return self.tuple_of(")")
        if token == "@":
            self.advance()
            if self.expression is None:
                raise self.error("no scalar expressions here")
            return self.expression(self)
        word = self.word()
        constants = {"none": None, "true": True, "false": False}
        if word in constants:
            return constants[word]
        if word in DTYPES:
            return DTYPES[word]
        if word in self.classes:
            self.expect("(")
            return self.record(self.classes[word], ")")
        raise self.error(f"unknown word {word!r}")

    def tuple_of(self, close: str) -> tuple[Any, ...]:
        """The values up to `close`; the opening bracket is the current token."""
        self.advance()
        items = []
        while not self.take(close):
            items.append(self.value())
            if not self.take(","):
                self.expect(close)
                break
        return tuple(items)

    def fields(self, close: str) -> dict[str, Any]:
        """`name=value, ...` up to and with `close`."""
        found: dict[str, Any] = {}
        while not self.take(close):
            name = self.word()
            self.expect("=")
            found[name] = self.value()
            if not self.take(","):
                self.expect(close)
                break
        return found

    def record(self, cls: type, close: str) -> Any:
        values = self.fields(close)
        known = {field.name for field in dataclasses.fields(cls)}
        for name in values:
            if name not in known:
                raise self.error(f"{cls.__name__} has no field {name!r}")
        try:
            return cls(**values)
        except TypeError as problem:
            raise self.error(str(problem)) from None

    def dim(self) -> Dim:
        """An int, or an expression over known symbols in braces."""
        if not self.at("{"):
            return self.integer()
        inside = self.through("}")[1:-1]
        try:
            return dims.parse(inside, self.symbols)
        except (ValueError, SyntaxError):
            raise self.error("not a dimension over the symbols declared above") from None

    def through(self, close: str) -> str:
        """The raw text from the current token through the next `close`."""
        start, end = self._start, self.text.find(close, self._start)
        if end < 0:
            raise self.error(f"expected {close!r}")
        self._end = end + len(close)
        self.advance()
        return self.text[start : end + len(close)]
