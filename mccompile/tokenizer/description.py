"""What a tokenizer does, as far as C needs to know, and how what is not supported is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from ..base.errors import BadFile, Problem, UnsupportedModel
from ..base.records import dataclass

SPLITS = 4  # that may cut one another's words: MCC_TOKENS_SPLITS


@dataclass(frozen=True)
class Added:
    token: int
    text: str
    special: bool
    normalized: bool
    left: bool = False  # it takes the spaces in front of it
    right: bool = False  # and those behind it
    alone: bool = False  # it is one only where no letters stand beside it

    @property
    def ways(self) -> int:
        """MCC_ADDED_SPECIAL and so on."""
        return self.special + 2 * self.left + 4 * self.right + 8 * self.alone


@dataclass(frozen=True)
class Spacing:
    """What becomes of spaces, and what is put in front of a text."""

    prefix: str = ""
    unless_there: bool = False
    first_only: bool = False
    space: str = ""  # stands for a space; "": a space does


@dataclass(frozen=True)
class Tokenizer:
    texts: Mapping[int, bytes]  # of all tokens
    words: Sequence[int]  # tokens that a word or character may be
    merges: Mapping[tuple[int, int], tuple[int, int]]  # by two tokens: rank and result
    byte_tokens: Sequence[int]
    of_bytes: bool  # words begin as bytes, else as characters
    whole: bool  # a word that is a token stays one
    added: Sequence[Added] = ()
    spacing: Spacing = field(default_factory=Spacing)
    nfc: bool = False
    splits: Sequence[str] = ()  # regular expressions
    before: Sequence[int] = ()  # tokens around a text
    behind: Sequence[int] = ()
    strips: bool = False  # a space in front of decoded text is left out
    scores: Sequence[float] = ()  # of all tokens, where words are cut as is likeliest (unigram)
    unknown: int = 0  # the token of characters that no token has, where there are scores


def damaged(why: str) -> BadFile:
    return BadFile(Problem("tokenizer.json is damaged", "", why, "copy or download it again"))


def unsupported(
    what: str, why: str, fix: str = "encode the text where the tokens are used from Python"
) -> UnsupportedModel:
    return UnsupportedModel(Problem(f"a tokenizer that cannot be compiled: {what}", "", why, fix))
