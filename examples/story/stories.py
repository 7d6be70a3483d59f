"""Makes up the short stories that train.py learns: a grammar of a few hundred words. Who finds what where, and whose it
is, stays the same through a story, so that a network has to look back to what it has written."""

from __future__ import annotations

import itertools

import numpy as np

NAMES = ["Mia", "Tom", "Lily", "Ben", "Anna", "Max", "Nora", "Sam", "Ruby", "Finn", "Ella", "Otto"]
ANIMALS = ["fox", "bear", "owl", "cat", "dog", "rabbit", "mouse", "duck", "frog", "pony", "hen", "goat"]
TRAITS = ["little", "brave", "kind", "shy", "clever", "sleepy", "happy", "curious"]
PLACES = ["by the river", "in the forest", "near the old mill", "on a green hill", "at the farm", "by the sea"]
COLOURS = ["red", "blue", "yellow", "green", "white", "golden"]
THINGS = ["kite", "ball", "boat", "hat", "bell", "lamp", "shell", "book", "drum", "key"]
WAYS = ["under a tree", "behind a stone", "in the grass", "next to the path", "in the mud", "on a bench"]
FOODS = ["bread", "soup", "apples", "honey", "berries", "cake"]
DAYS = ["One day", "One morning", "One evening", "After the rain", "On a warm day"]


def story(chance: np.random.Generator) -> str:
    """One story, as a line."""

    def pick(words: list[str]) -> str:
        return str(words[int(chance.integers(len(words)))])

    name, other_name = (NAMES[int(n)] for n in chance.choice(len(NAMES), 2, replace=False))
    animal, other = (ANIMALS[int(n)] for n in chance.choice(len(ANIMALS), 2, replace=False))
    trait, thing, place = pick(TRAITS), f"{pick(COLOURS)} {pick(THINGS)}", pick(PLACES)
    begin = pick(["Once there was", "There once was", "Long ago there was"])
    lines = [f"{begin} a {trait} {animal} called {name}.", f"{name} lived {place}."]
    plot = int(chance.integers(4))
    if plot == 0:
        lines.append(f"{pick(DAYS)} {name} found a {thing} {pick(WAYS)}.")
        lines.append(f'"That is my {thing}," said {other_name} the {other}.')
        lines.append(f"{name} gave the {thing} back, and {other_name} said thank you.")
    elif plot == 1:
        lines.append(f"{pick(DAYS)} {name} lost a {thing} {place}.")
        lines.append(f"{other_name} the {other} helped to look for it.")
        lines.append(f"They found the {thing} {pick(WAYS)}.")
    elif plot == 2:
        food = pick(FOODS)
        lines.append(f"{pick(DAYS)} {name} made {food} and called {other_name} the {other}.")
        lines.append(f'"I like {food}," said {other_name}, and brought a {thing}.')
        lines.append(f"They ate the {food} and played with the {thing}.")
    else:
        lines.append(f"{pick(DAYS)} {name} saw {other_name} the {other} cry.")
        lines.append(f'"My {thing} is gone," said {other_name}.')
        lines.append(f"{name} found the {thing} {pick(WAYS)}, and {other_name} was happy.")
    ends = [f"{name} and {other_name} became friends.", f"The {animal} and the {other} went home."]
    lines.append(pick([*ends, f"Then {name} slept well.", "It was a good day."]))
    return " ".join(lines) + "\n"


def stories(count: int, seed: int) -> list[str]:
    chance = np.random.default_rng(seed)
    return [story(chance) for _ in range(count)]


def pieces_of(texts: list[str], count: int) -> list[str]:
    """A vocabulary by byte pairs: letters, and what comes up most often of two pieces of a word; words begin with their
    space."""
    words: dict[tuple[str, ...], int] = {}
    for text in texts:
        for word in text.replace(" ", "\0 ").split("\0"):
            words[tuple(word)] = words.get(tuple(word), 0) + 1
    found = sorted({letter for word in words for letter in word})
    while len(found) < count:
        pairs: dict[tuple[str, str], int] = {}
        for word, often in words.items():
            for pair in itertools.pairwise(word):
                pairs[pair] = pairs.get(pair, 0) + often
        if not pairs:
            break
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        found.append("".join(best))
        words = _joined(words, best)
    return found


def _joined(words: dict[tuple[str, ...], int], pair: tuple[str, str]) -> dict[tuple[str, ...], int]:
    made: dict[tuple[str, ...], int] = {}
    for word, often in words.items():
        parts: list[str] = []
        for piece in word:
            if parts and (parts[-1], piece) == pair:
                parts[-1] += piece
            else:
                parts.append(piece)
        made[tuple(parts)] = made.get(tuple(parts), 0) + often
    return made


def encoded(text: str, pieces: list[str]) -> list[int]:
    """The longest piece that fits, again and again; write.c does the same."""
    numbers = {piece: number for number, piece in enumerate(pieces)}
    longest, found, at = max(map(len, pieces)), [], 0
    while at < len(text):
        size = next(n for n in range(min(longest, len(text) - at), 0, -1) if text[at : at + n] in numbers)
        found.append(numbers[text[at : at + size]])
        at += size
    return found


def as_header(pieces: list[str]) -> str:
    """The vocabulary in C."""

    def string(piece: str) -> str:
        return '"' + piece.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'

    head = "/* Written by train.py: what each token stands for. The end of a line ends a story. */\n"
    lines = ("    " + ", ".join(map(string, pieces[at : at + 8])) + ",\n" for at in range(0, len(pieces), 8))
    return f"{head}#define PIECES {len(pieces)}\nstatic const char *const pieces[PIECES] = {{\n{''.join(lines)}}};\n"
