"""onnxruntime's Tokenizer: words of strings, as text vectorizers are exported.

Invariant: what is kept or separates words is decided byte by byte, so it is a set of characters that has none beyond
ASCII, or all of them.
"""

from __future__ import annotations

from functools import cache

from ..base.dtypes import string
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..kinds.split_strings import SplitStrings
from .api import Fact, Invalid, Lowering, Operator, Site, Unsupported
from .rules.at_run_time import static_count
from .rules.patterns import LAST, Characters, Ranges, Repeat, complement, read, union
from .strings import check_strings, split

_ASCII = 128
_FIX = 'export the vectorizer with a pattern such as "[a-zA-Z0-9_]+", or split in your program'


@dataclass(frozen=True)
class Tokenizer(Operator):
    domain = "com.microsoft"
    versions = (1,)
    mark: int = 0
    mincharnum: int = 1
    pad_value: str = ""
    separators: tuple[str, ...] = ()
    tokenexp: str = ""

    def infer(self, site: Site) -> list[Fact]:
        check_strings(site, 1)
        x = site.type(0)
        if x.rank not in (1, 2) or self.mincharnum < 1 or bool(self.separators) == bool(self.tokenexp):
            raise Invalid(f"words of {x} with at least {self.mincharnum} characters, by separators or by a pattern")
        if self.mark:
            raise Unsupported("marks at the ends of strings", "set mark to 0")
        static_count(x)
        _kept(self.separators, self.tokenexp)
        declared = site.results[0].shape[-1:] if site.results and site.results[0] and site.results[0].rank else ()
        most = declared[0] if site.name and declared and isinstance(declared[0], int) else None
        return [Fact(TensorType(string, (*x.shape, site.size(0, x.rank, 0 if x.count == 0 else most))))]

    def lower(self, to: Lowering) -> None:
        type = self.infer(to.site)[0].type
        if isinstance(type.shape[-1], int):
            to.set(0, to.nothing(type))
            return
        kind = SplitStrings(kept=_kept(self.separators, self.tokenexp), least=self.mincharnum, blank=self.pad_value)
        to.set(0, split(to, kind, static_count(to.input(0).type), type.shape[-1])[0])


@cache
def _kept(separators: tuple[str, ...], words: str) -> Ranges:
    """The bytes that words consist of."""
    if words:
        found = read(words)
        if not isinstance(found, Repeat) or (found.least, found.most) != (1, None):
            raise Unsupported(f"words that match {words!r}", _FIX)
        return _bytes(_characters(found.part, words))
    ranges = [span for separator in separators for span in _characters(_once(separator), separator)]
    return _bytes(complement(union(ranges)))


def _once(separator: str) -> object:
    """Several separators behind each other have no words between them, so one says the same."""
    found = read(separator)
    return found.part if isinstance(found, Repeat) and found.least == 1 else found


def _characters(found: object, pattern: str) -> Ranges:
    if not isinstance(found, Characters):
        raise Unsupported(f"{pattern!r} is not a set of characters", _FIX)
    return found.ranges


def _bytes(ranges: Ranges) -> Ranges:
    low = tuple((first, min(last, _ASCII - 1)) for first, last in ranges if first < _ASCII)
    high = [(max(first, _ASCII), last) for first, last in ranges if last >= _ASCII]
    if high and high != [(_ASCII, LAST)]:
        raise Unsupported("a set of characters that parts those beyond ASCII", _FIX)
    return union((*low, (_ASCII, 255))) if high else low
