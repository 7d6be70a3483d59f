"""Language models at random: `python -m tests.fuzz.languages --seconds 600 --only decoders,texts,files,tokenizers`

decoders: files, folders and exports to ONNX with sizes, types of weights and options at random, compiled, beside their
    definition in doubles
texts: what programs write where the context is full, beside the same tokens in doubles
files: GGUF files, safetensors, config.json, tokenizer.json with something wrong are read or refused
tokenizers: compiled ones beside the package tokenizers, on random Unicode and lines of text

A line for each failure, with the number that makes it again: `--subject 123`.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from tests.fuzz.languages import damage, decoders, shifts, strings
from tests.llm import models
from tests.tokenizer.built import EXPRESSIONS, Built, of_bytes, of_characters, of_scores

FAMILIES = (*EXPRESSIONS, "llama2", "gemma", "mistral", "scores", "pieces")
STRINGS, FILES = 2500, 20  # of a subject
SECONDS = 120  # that one may take


class TooSlow(Exception):
    pass


def one_decoder(seed: tuple[int, ...]) -> str:
    chance = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(prefix="mccompile-") as folder:
        decoder = decoders.drawn(chance, Path(folder))
        chosen = decoders.options(chance, shutil.which("tcc") or "cc")
        found = decoders.differs(decoder, chosen, chance)
    return f"{found}\n    {chosen}\n    {decoder.text}" if found else ""


def one_text(seed: tuple[int, ...]) -> str:
    chance = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(prefix="mccompile-") as folder:
        return shifts.differs(chance, Path(folder, "tiny"), shutil.which("tcc") or "cc")


def some_files(seed: tuple[int, ...]) -> str:
    chance = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        for number in range(FILES):
            name, files = _files()[int(chance.integers(len(_files())))]
            place = Path(scratch, name)
            chosen = list(files)[int(chance.integers(len(files)))]
            for file, data in {**files, chosen: damage.damaged(files[chosen], chosen, chance)}.items():
                path = place / file if name != chosen else place
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(data)
            found = damage.fault(place, chosen)
            if found:
                return f"{chosen}, file {number}: {found}"
    return ""


@cache
def _files() -> tuple[tuple[str, dict[str, bytes]], ...]:
    """Small models: their name, and their files with what is in them."""
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        places = [Path(scratch, name) for name in ("llama", "bytes", "gpt", "file.gguf")]
        models.llama(places[0], "llama2")
        models.llama(places[1], "llama3")
        models.gpt2(places[2])
        tokens = ["<unk>", "<s>", "</s>", *(f"<0x{n:02X}>" for n in range(256)), "\u2581", "a", "b", "ab"]
        kinds = [2, 3, 3, *[6] * 256, 1, 1, 1, 1]
        said = {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": tokens}
        scores = [float(-n) for n in range(len(tokens))]
        said |= {"tokenizer.ggml.token_type": kinds, "tokenizer.ggml.scores": scores}
        models.gguf(places[3], said)
        found = []
        for place in places:
            files = [place] if place.is_file() else sorted(path for path in place.iterdir() if path.is_file())
            found.append((place.name, {path.name: path.read_bytes() for path in files}))
        return tuple(found)


def some_strings(seed: tuple[int, ...]) -> str:
    chance = np.random.default_rng(seed)
    family = FAMILIES[seed[-1] % len(FAMILIES)]
    made, built = _tokenizer(family)
    given = strings.drawn(chance, STRINGS)
    wanted = [each.ids for each in made.encode_batch_fast(given)]
    again = made.decode_batch(wanted)
    for text, tokens, decoded, found in zip(given, wanted, again, built.many([g.encode() for g in given]), strict=True):
        broken = decoded.count("\ufffd") > text.count("\ufffd")  # bytes that form no text are shown byte by byte
        if found[0] != tokens or (found[1] != decoded and not broken):
            return f"{family}: {text!r} has tokens {found}, not {(tokens, decoded)}"
    return ""


@cache
def _tokenizer(family: str) -> tuple[Any, Built]:
    if family in ("scores", "pieces"):
        made = of_scores(family == "scores")
    else:
        made = of_bytes(family) if family in EXPRESSIONS else of_characters(family)
    return made, Built(made)


WAYS: dict[str, Callable[[tuple[int, ...]], str]] = {
    "decoders": one_decoder,
    "texts": one_text,
    "files": some_files,
    "tokenizers": some_strings,
}


def verdict(way: str, seed: int, number: int) -> str:
    """What is wrong with a subject, or nothing."""
    signal.alarm(SECONDS)
    try:
        return WAYS[way]((seed, number))
    except TooSlow:
        return f"does not end within {SECONDS} s"
    finally:
        signal.alarm(0)


def _alarm(number: int, frame: FrameType | None) -> None:
    raise TooSlow


def main() -> int:
    arguments_of = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments_of.add_argument("--seconds", type=int, default=600)
    arguments_of.add_argument("--seed", type=int, default=1)
    known = WAYS if find_spec("tokenizers") else ["decoders"]  # the others make tokenizers with it
    arguments_of.add_argument("--only", default=",".join(known))
    arguments_of.add_argument("--subject", type=int, help="only this one")
    arguments = arguments_of.parse_args()
    signal.signal(signal.SIGALRM, _alarm)
    start, ran, faults, number = time.monotonic(), dict.fromkeys(arguments.only.split(","), 0), 0, 0
    while time.monotonic() - start < arguments.seconds:
        number = arguments.subject if arguments.subject is not None else number + 1
        for way in ran:
            found = verdict(way, arguments.seed, number)
            ran[way] += 1
            faults += bool(found)
            if found:
                print(f"{way} {number}: {found}", flush=True)
        if arguments.subject is not None:
            break
    each = ", ".join(f"{count} of {way}" for way, count in ran.items())
    print(f"{each} ({FILES} files, {STRINGS} strings each): {faults} faults in {time.monotonic() - start:.0f} s")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
