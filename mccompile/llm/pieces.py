"""What stands around the messages of a chat, as C puts it together.

Invariant: a date inside of a piece is its format of strftime between marks, and becomes that of the day when a piece is
used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import field

from ..base.records import dataclass

_BEGIN, _END = "\ue000", "\ue001"
_DATE = re.compile(f"{_BEGIN}(.*?){_END}", re.DOTALL)
DATE_FORMAT = re.compile(r"(?:[ -$&-~]|%[dbBYmHMSAaIpjy%])*")  # which C and Python write alike


def marked(form: str) -> str:
    return f"{_BEGIN}{form}{_END}"


def has_marks(text: str) -> bool:
    return _BEGIN in text or _END in text


def parts(piece: str) -> list[tuple[str, bool]]:
    """Texts and formats of dates in turn; those are true."""
    return [(part, bool(number % 2)) for number, part in enumerate(_DATE.split(piece)) if part]


@dataclass(frozen=True)
class Trims:
    """Which spaces a text loses: 1 those in front, 2 those behind."""

    first: int = 0  # the first question
    told: int = 0  # the same behind a system message
    later: int = 0
    system: int = 0


@dataclass(frozen=True)
class Chat:
    begin: str  # in front of the first question
    asked: str  # behind a question: an answer begins
    again: str  # behind an answer, in front of the next question
    system: tuple[str, str] | None  # around the system message, in front of the first question
    answer: str = ""  # spaces that the template has in front of an answer, and a model writes itself
    trims: Trims = field(default_factory=Trims)
    opened: str = ""  # the end of `asked` where the template leaves it out later, as `<think>`
    skips: bool = False  # an empty system message is none
    needs: bool = False  # a question has more than spaces: around others the template has another text
    words: tuple[str, ...] = ()  # that the template takes for commands in a system message

    @property
    def pieces(self) -> tuple[str, ...]:
        return self.begin, self.asked, self.again, *(self.system or ())

    @property
    def dates(self) -> bool:
        return any(is_date for piece in self.pieces for _, is_date in parts(piece))

    def text(self, system: str | None, said: Sequence[str], date: Callable[[str], str] = marked) -> str:
        """Of questions and answers in turn, a question last."""

        def dated(piece: str) -> str:
            return "".join(date(part) if is_date else part for part, is_date in parts(piece))

        made, how = dated(self.begin), self.trims.first
        system = None if system is None else _trimmed(system, self.trims.system)
        if self.system and system is not None and not (self.skips and not system):
            made, how = dated(self.system[0]) + system + dated(self.system[1]), self.trims.told
        for number, each in enumerate(said):
            if number % 2:
                made, how = made + self.answer + each + dated(self.again), self.trims.later
                continue
            asked = self.asked if number == len(said) - 1 else self.asked.removesuffix(self.opened)
            made += _trimmed(each, how) + dated(asked)
        return made


def _trimmed(text: str, how: int) -> str:
    text = text.lstrip() if how & 1 else text
    return text.rstrip() if how & 2 else text
