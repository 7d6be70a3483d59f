"""Texts that small programs write over the end of their context, beside the same tokens in doubles."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

import mccompile
from mccompile.base.errors import WrongUse
from tests.importers.decoders.reference import logits
from tests.llm import models

PROMPTS = ("", "a", "the time is", " upon a time", "<|end|> once", "two times a time " * 3)
NEAR = 1e-4  # of the largest logit: two tokens as likely as each other


class Ends(Exception):
    """The definition says no more: the prompt is too long, or two tokens are as likely as each other."""


class Text:
    """What a session writes: the tokens so far, and the context shift as docs/language.md defines it."""

    def __init__(self, made: Any, weights: Any, room: int, keep: int | None, gpt: bool) -> None:
        self.made, self.weights, self.room, self.keep = made, weights, room, keep
        self.how: dict[str, Any] = {"turns": False} if gpt else {}
        self.groups = 4 if gpt else 2
        self.tokens: list[int] = []

    def shift(self) -> bool:
        keep = len(self.tokens) if self.keep is None else min(self.keep, len(self.tokens))
        gone = (len(self.tokens) - keep + 1) // 2
        del self.tokens[keep : keep + gone]
        return gone > 0

    def add(self, prompt: str) -> None:
        if not prompt and self.tokens:
            return
        while len(self.tokens + self.new(prompt)) > self.room:
            if not self.shift():
                raise Ends
        self.tokens += self.new(prompt)

    def new(self, prompt: str) -> list[int]:
        return list(self.made.encode(prompt, add_special_tokens=not self.tokens).ids)

    def stop(self, most: int, chance: Generator) -> str:
        """Some letters of what it would write; empty where there are none."""
        other = copy(self)
        other.tokens = list(self.tokens)
        text = self.made.decode(other.written(most)[0])
        place, size = int(chance.integers(len(text) + 1)), int(chance.integers(1, 6))
        return str(text[place : place + size].split("\ufffd")[0])

    def written(self, most: int, stop: str = "") -> tuple[list[int], str]:
        """The most likely tokens, and why they end."""
        found: list[int] = []
        while len(found) < most:
            scores = logits(np.array(self.tokens), self.weights, 2, 4, self.groups, **self.how)[-1]
            second, first = np.sort(scores)[-2:]
            if first - second < NEAR * np.abs(scores).max():
                raise Ends
            if len(self.tokens) == self.room and not self.shift():
                return found, "context"
            found.append(int(scores.argmax()))
            self.tokens.append(found[-1])
            if stop and stop in self.made.decode(found):
                return found, "stop"
        return found, "most"


def differs(chance: Generator, place: Path, compiler: str) -> str:
    """How a text differs from its definition; empty where it does not."""
    gpt = chance.random() < 0.3
    made, weights = models.gpt2(place) if gpt else models.llama(place, str(chance.choice(["llama3", "qwen2"])))
    past, batch = int(chance.integers(6, 30)), int(chance.integers(1, 6))
    keep = None if chance.random() < 0.2 else int(chance.integers(0, past + 4))
    text = Text(made, weights, past + 1, keep, gpt)
    dims = {"past": (0, past), "tokens": (1, batch)}
    prefer = str(chance.choice(["balanced", "time", "ram", "flash"]))
    net = mccompile.load(place, dims=dims, target="generic", cc=compiler, prefer=prefer)
    said: list[Any] = []
    for _ in range(4):
        prompt, most = PROMPTS[int(chance.integers(len(PROMPTS)))], int(chance.integers(0, 2 * past))
        said.append((prompt, most))
        try:
            text.add(prompt)
            if not text.tokens:
                raise Ends
            stop = text.stop(most, chance) if chance.random() < 0.5 else ""
            tokens, ended = text.written(most, stop)
        except Ends:
            return ""
        try:
            found = net.generate(prompt, most=most, keep=keep, stop=[stop] if stop else [])
        except WrongUse as error:
            return f"{dims}, keep {keep}, {prefer}, {said}, stop {stop!r}: {error}"
        wanted = made.decode(tokens, skip_special_tokens=True)
        wanted = wanted[: wanted.index(stop)] if ended == "stop" else wanted
        pairs = [(found.tokens, len(tokens)), (found.ended, ended), (_plain(str(found)), _plain(wanted))]
        if any(one != other for one, other in pairs):
            return f"{dims}, keep {keep}, {prefer}, {said}, stop {stop!r}: got and wanted {pairs}"
    return ""


def _plain(text: str) -> str:
    """Without what stands for bytes that are not text, which may be one for all of them."""
    return text.replace("\ufffd", "")
