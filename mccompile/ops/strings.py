"""StringConcat, StringSplit, StringNormalizer, RegexFullMatch.

Pieces of strings point into the strings they are of. Operators that make new text have room for so many bytes
(`--bound strings=BYTES`); a run that needs more ends with MCC_ERR_STRING_ROOM.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache
from typing import Any

import numpy as np

from ..base.dims import Dim, upper
from ..base.dtypes import bool_, i64, string, u8
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.ir import apply, literal, operand
from ..kinds.api import Kind
from ..kinds.change_case import ChangeCase
from ..kinds.concat import Concat
from ..kinds.join_strings import JoinStrings
from ..kinds.match_strings import MatchStrings
from ..kinds.split_strings import SplitStrings
from ..program.ir import LASTING, If, Stop, View
from .api import INJECTIVE, Fact, Invalid, Lowering, OnnxNode, Operator, Site, Unsupported, make
from .data_dependent import selected
from .reduce import reduce_call
from .rules.at_run_time import gathered, measured, static_count
from .rules.automata import automaton
from .rules.elementwise import broadcast_shapes
from .rules.patterns import read

DEFAULT_ROOM = 1 << 16  # bytes for the strings that an operator makes, where nothing else is known


class MakesText(Operator, abstract=True):
    """An operator that makes new strings; `room` are the bytes for them."""

    room: int

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        node.attributes["room"] = room_of(node)
        return make(cls, node)

    def to_onnx(self) -> tuple[dict[str, Any], int | None]:
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "room"}
        return {name: value for name, value in own.items() if value is not None}, None


def room_of(node: OnnxNode) -> int:
    """What the user gives strings."""
    given = node.string_room()
    return DEFAULT_ROOM if given is None else given


def made(to: Lowering, kind: Kind, ins: list[View], shape: Shape, room: int) -> View:
    """New strings, and the end of the run where they do not fit."""
    if to.repeats:
        raise Unsupported(
            "strings are made in a loop, and each trip would write over those of the one before",
            "make them outside of the loop, or choose among strings that are there",
        )
    types = TensorType(string, shape), TensorType(u8, (max(room, 1),)), TensorType(bool_, ())
    strings, contents, is_full = to.call(kind, ins, *types)
    contents.buffer.role = LASTING
    why = f"the strings take more than {room} bytes"
    to.body.append(If(is_full, [Stop(why, to.provenance, "STRING_ROOM")], [], to.provenance))
    return strings


def check_strings(site: Site, count: int) -> None:
    for number in range(count):
        if site.type(number).dtype is not string:
            raise Invalid(f"operand {number} is {site.type(number)}, not strings")


@dataclass(frozen=True)
class StringConcat(MakesText):
    versions = (20,)
    room: int = DEFAULT_ROOM

    def infer(self, site: Site) -> list[Fact]:
        check_strings(site, 2)
        return [Fact(TensorType(string, broadcast_shapes([site.shape(0), site.shape(1)])))]

    def lower(self, to: Lowering) -> None:
        shape = to.type().shape
        ins = [view.broadcast_to(shape) for view in to.inputs()]
        to.set(0, made(to, JoinStrings(), ins, shape, self.room))


@dataclass(frozen=True)
class RegexFullMatch(Operator):
    """The pattern becomes the table of a finite automaton while the model is compiled."""

    versions = (20,)
    fusion = INJECTIVE
    pattern: str = ""

    def infer(self, site: Site) -> list[Fact]:
        check_strings(site, 1)
        _automaton(self.pattern)
        return [Fact(replace(site.type(0), dtype=bool_))]

    def lower(self, to: Lowering) -> None:
        found = _automaton(self.pattern)
        tables = [to.constant(found.classes), to.constant(found.next), to.constant(found.accepts)]
        to.set(0, to.call(MatchStrings(), [to.input(0), *tables], to.type())[0])


@cache
def _automaton(pattern: str) -> Any:
    return automaton(read(pattern))


@dataclass(frozen=True)
class StringSplit(Operator):
    """White space is that of ASCII."""

    versions = (20,)
    delimiter: str = ""
    maxsplit: int | None = None

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        if node.attributes.get("delimiter") is None:
            node.attributes.pop("delimiter", None)
        return make(cls, node)

    def infer(self, site: Site) -> list[Fact]:
        check_strings(site, 1)
        x = site.type(0)
        static_count(x)
        if self.maxsplit is not None and self.maxsplit < 0:
            raise Invalid(f"maxsplit is {self.maxsplit}")
        most = None if self.maxsplit is None else self.maxsplit + 1
        declared = site.results[0].shape[-1:] if site.results and site.results[0] and site.results[0].rank else ()
        if site.name and declared and isinstance(declared[0], int):
            most = declared[0] if most is None else min(most, declared[0])
        pieces = site.size(0, x.rank, 0 if x.count == 0 else most)
        return [Fact(TensorType(string, (*x.shape, pieces))), Fact(TensorType(i64, x.shape))][: site.outputs]

    def lower(self, to: Lowering) -> None:
        x = to.input(0)
        count = static_count(x.type)
        type = self.infer(to.site)[0].type
        pieces = type.shape[-1]
        if isinstance(pieces, int):
            counts = np.zeros(x.type.static_shape, np.int64)
            views = [to.nothing(type), to.constant(counts)]
        else:
            views = [*split(to, SplitStrings(self.delimiter, self.maxsplit), count, pieces)]
        for number, view in enumerate(views):
            if to.wants(number):
                to.set(number, view)


def split(to: Lowering, kind: SplitStrings, count: int, pieces: Dim) -> tuple[View, View]:
    """The pieces of operand 0, and how many of them each string has."""
    x, room = to.input(0), upper(pieces)
    types = TensorType(string, (count, room)), TensorType(i64, (count,)), TensorType(i64, (1,))
    found, numbers, most = to.call(kind, [to.reshape(x, (count,))], *types)
    measured(to, pieces, most)
    return to.reshape(found, (*x.shape, room)).sliced(len(x.shape), 0, pieces), to.reshape(numbers, x.shape)


CASES = {"NONE": None, "LOWER": str.lower, "UPPER": str.upper}
_LETTERS = (range(0x590), range(0x1E00, 0x2000))  # Latin, Greek, Cyrillic, Armenian


@cache
def case_table(action: str) -> np.ndarray:
    """Rows for the kind change_case: letters that become one other letter."""
    change = CASES[action]
    assert change is not None
    changed = [(code, ord(text) - code) for part in _LETTERS for code in part if len(text := change(chr(code))) == 1]
    rows: list[list[int]] = []
    for code, difference in changed:
        last = rows[-1] if rows else None
        if difference == 0:
            continue
        if last and last[3] == difference and code - last[1] in (1, 2) and last[2] in (0, code - last[1]):
            last[1:3] = code, code - last[1]
        else:
            rows.append([code, code, 0, difference])
    return np.array([[first, last, step or 1, difference] for first, last, step, difference in rows], np.int32)


def lower(text: str) -> str:
    """As the table has it."""
    rows = case_table("LOWER").tolist()
    return text.translate({code: code + row[3] for row in rows for code in range(row[0], row[1] + 1, row[2])})


@dataclass(frozen=True)
class StringNormalizer(MakesText):
    """Case is changed letter by letter, for what has one letter in the other case. The locale does not matter."""

    versions = (10,)
    case_change_action: str = "NONE"
    is_case_sensitive: int = 0
    locale: str | None = None
    stopwords: tuple[str, ...] = ()
    room: int = DEFAULT_ROOM

    def infer(self, site: Site) -> list[Fact]:
        check_strings(site, 1)
        x = site.type(0)
        if x.rank not in (1, 2) or (x.rank == 2 and x.shape[0] != 1):
            raise Invalid(f"x is {x}, not [C] or [1, C]")
        if self.case_change_action not in CASES:
            raise Invalid(f"case_change_action {self.case_change_action!r} is not one of {', '.join(CASES)}")
        static_count(x)
        if not self.stopwords and x.count != 0:
            return [Fact(x)]
        size = site.size(0, x.rank - 1, max(static_count(x), 1), 1) if x.count != 0 else 1
        return [Fact(TensorType(string, (*x.shape[:-1], size)))]

    def lower(self, to: Lowering) -> None:
        count = static_count(to.input(0).type)
        x = to.reshape(to.input(0), (count,))
        shape = self.infer(to.site)[0].type.shape
        if count == 0:
            to.set(0, to.nothing(to.type()))
            return
        if self.stopwords:
            x = self.kept(to, x, shape)
        to.set(0, to.reshape(self.changed(to, x, self.case_change_action), shape))

    def changed(self, to: Lowering, x: View, action: str) -> View:
        if action == "NONE":
            return x
        return made(to, ChangeCase(), [x, to.constant(case_table(action), "cases")], x.shape, self.room)

    def kept(self, to: Lowering, x: View, shape: Shape) -> View:
        """All that is not a stopword; one empty string where nothing is left."""
        words, compared = self.stopwords, x
        if not self.is_case_sensitive:
            words = tuple(lower(word) for word in words)
            compared = self.changed(to, x, "LOWER")
        count = static_count(x.type)
        stops = to.constant(np.array(words, object), "stopwords")
        same = apply("equal", operand(0, string), operand(1, string))
        hits = to.map(same, [to.reshape(compared, (count, 1)), stops], (count, len(words)))
        kept = apply("not", operand(0, bool_))
        flags = to.reshape(reduce_call(to, (1,), "or", operand(0, bool_), [hits], kept), (count,))
        none = reduce_call(to, (0,), "or", operand(0, bool_), [flags], kept)
        all_flags = to.call(Concat(0), [flags, none], TensorType(bool_, (count + 1,)))[0]
        empty = to.map(literal(0, string), [], (1,))
        words_and_empty = to.call(Concat(0), [x, empty], TensorType(string, (count + 1,)))[0]
        dim = shape[-1]
        places = selected(to, all_flags, dim)
        return gathered(to, words_and_empty, {0: places}, (dim,))
