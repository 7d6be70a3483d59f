"""Tokenizers as `tokenizers` knows them, and compiled."""

from __future__ import annotations

import ctypes
import json
import random
import subprocess
import tempfile
from itertools import accumulate
from pathlib import Path
from typing import Any

from mccompile.tokenizer.library import library
from mccompile.tokenizer.reading import read
from mccompile.tokenizer.steps import GPT2

FLAGS = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
    r"|\s+(?!\S)|\s"
)
EXPRESSIONS = {"gpt2": GPT2, "llama3": LLAMA3, "qwen2": QWEN2, "cl100k": CL100K, "neox": GPT2}
_LETTERS = (
    "aaeeiotnshrSTKdlmcu'  \n\r\t.,;!?-\"0123456789éß\u017füÅ\u0301\u0327\u00a0\u0085日本語한국가각\u1100\u1161\u11a8"
    "🙂👩\u200d💻अनुकΩἂ₂½"
)
_WORDS = "the and it's WE'LL they've I'm don't once upon a time 1234567 3.14 über naïve Москва 東京 <s> </s> ▁ <0x41>"
WORDS = [*_WORDS.split(), "  ", "\n\n", " ", "<|end|>", "<|tool|>", "<|end", "x<|end|>y"]


def texts(seed: int, count: int) -> list[str]:
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        parts = []
        for _ in range(chance.randint(0, 12)):
            letters = "".join(chance.choice(_LETTERS) for _ in range(chance.randint(1, 5)))
            parts.append(chance.choice([letters, chance.choice(WORDS), chance.choice(WORDS) + " "]))
        found.append("".join(parts))
    return found


def of_bytes(family: str) -> Any:
    """A tokenizer over bytes, trained on a few texts."""
    from tokenizers import (
        AddedToken,
        Regex,
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        processors,
        trainers,
    )

    made = Tokenizer(models.BPE(ignore_merges=family == "llama3"))
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=family in ("gpt2", "neox"))
    split = pre_tokenizers.Split(Regex(EXPRESSIONS[family]), "isolated")
    made.pre_tokenizer = level if family in ("gpt2", "neox") else pre_tokenizers.Sequence([split, level])
    if family in ("qwen2", "neox"):
        made.normalizer = normalizers.NFC()
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator(texts(99, 400), trainer)
    made.add_special_tokens([AddedToken("<|end|>", normalized=family == "gpt2"), AddedToken("<s>", normalized=False)])
    made.add_tokens([AddedToken("<|tool|>", normalized=False)])
    if family == "neox":
        made.add_tokens([AddedToken(" " * count, normalized=True) for count in (4, 3, 2)])
    if family == "llama3":
        begin = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", made.token_to_id("<s>"))])
        made.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), begin])
    return made


def of_characters(family: str) -> Any:
    """A tokenizer over characters with tokens for bytes, trained on a few texts."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    made = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    steps = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    steps = steps[1:] if family == "gemma" else steps
    made.normalizer = normalizers.Sequence(steps)
    trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=special, limit_alphabet=60, show_progress=False)
    made.train_from_iterator([" " + text for text in texts(98, 400)], trainer)
    if family == "gemma":
        made.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    if family == "mistral":
        made.normalizer = None
        made.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="first", split=False)
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    made.decoder = decoders.Sequence(parts if family == "gemma" else [*parts, decoders.Strip(" ", 1, 0)])
    made.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", made.token_to_id("<s>"))])
    return without_special_bytes(made, AddedToken("<|end|>", normalized=False, special=True))


def of_scores(byte_fallback: bool) -> Any:
    """A unigram tokenizer, trained on a few texts."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    if not byte_fallback:
        made.normalizer = None
        made.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="always")
    names = [f"<0x{byte:02X}>" for byte in range(256)] if byte_fallback else []
    trainer = trainers.UnigramTrainer(
        vocab_size=500, special_tokens=["<unk>", "<s>", *names], unk_token="<unk>", show_progress=False
    )
    made.train_from_iterator([" " + text for text in texts(97, 400)], trainer)
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    made.decoder = decoders.Sequence(parts)
    told = json.loads(made.to_str())
    told["model"]["byte_fallback"] = byte_fallback
    kept = Tokenizer.from_str(json.dumps(told))
    return without_special_bytes(kept, AddedToken("<|end|>", normalized=False, special=True))


def without_special_bytes(made: Any, more: Any) -> Any:
    """The same, whose tokens of bytes are not found in text."""
    from tokenizers import Tokenizer

    told = json.loads(made.to_str())
    told["added_tokens"] = [each for each in told["added_tokens"] if not each["content"].startswith("<0x")]
    found = Tokenizer.from_str(json.dumps(told))
    found.add_special_tokens([more])
    return found


class Built:
    def __init__(self, made: Any) -> None:
        with tempfile.TemporaryDirectory() as name:
            path, folder = Path(name, "tokenizer.json"), Path(name, "out")
            made.save(str(path))
            self.most = 3 * max(map(len, read(path).texts.values())) + 8
            written = library(path)
            written.write(folder)
            flags = [*FLAGS, "-shared", "-fPIC", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
            places = [f"-I{folder}", f"-I{folder}/runtime"]
            code = folder / "tokenizer.so"
            sources = [str(folder / "tokenizer.c"), str(Path(__file__).with_name("many.c"))]
            subprocess.run(["gcc", *flags, *places, *sources, "-o", str(code)], check=True)
            self.code = ctypes.CDLL(str(code))
            self.code.tokenizer_decode.restype = self.code.tokenizer_decode_end.restype = ctypes.c_size_t
            self.files = dict(written.files)

    def encode(self, data: bytes, whole: int = 1, room: int | None = None, words: int | None = None) -> list[int]:
        """Tokens; one number below 0 where that fails."""
        words = self._words(len(data)) if words is None else words
        room = 3 * len(data) + 8 if room is None else room
        tokens, scratch = (ctypes.c_int32 * (room + 1))(), (ctypes.c_uint32 * (words + 1))()
        tokens[room], scratch[words] = 77, 78
        size = ctypes.c_size_t
        count = self.code.tokenizer_encode(data, size(len(data)), whole, tokens, size(room), scratch, size(words))
        assert (tokens[room], scratch[words]) == (77, 78)
        return list(tokens[:count]) if count >= 0 else [count]

    def _words(self, size: int) -> int:
        """Of scratch, for a text of so many bytes."""
        header = self.files["tokenizer.h"].decode()
        a, b = header.split("SCRATCH_WORDS(bytes) (")[1].split(")\n")[0].replace("u", "").split(" * (size_t)(bytes) + ")
        return int(a) * size + int(b)

    def many(self, texts: list[bytes]) -> list[tuple[list[int], str]]:
        """Tokens of each text, and the text that these are again: in one call, for a million of them."""
        size, longest, total = ctypes.c_size_t, max(map(len, texts)), sum(map(len, texts))
        ends, words = (size * len(texts))(*accumulate(map(len, texts))), self._words(longest)
        room, most = 3 * total + 8 * len(texts) + 8, 4 * total + 64 * len(texts) + 8 * self.most
        tokens, counts = (ctypes.c_int32 * room)(), (ctypes.c_int32 * len(texts))()
        decoded, stops = ctypes.create_string_buffer(most), (size * len(texts))()
        scratch = (ctypes.c_uint32 * words)()
        given = (b"".join(texts), ends, size(len(texts)), tokens, size(room), counts, scratch, size(words))
        assert self.code.tokenizer_many(*given, decoded, size(most), stops) == 1
        found, at, begin, text, each = list[tuple[list[int], str]](), 0, 0, decoded.raw, tokens[: sum(counts)]
        for count, stop in zip(counts, stops, strict=True):
            assert count >= 0
            found.append((each[at : at + count], text[begin:stop].decode()))
            at, begin = at + count, stop
        return found

    def decode(self, tokens: list[int]) -> str:
        state, to, found = (ctypes.c_uint8 * 6)(), ctypes.create_string_buffer(self.most), ""
        for token in tokens:
            count = self.code.tokenizer_decode(state, ctypes.c_int32(token), to)
            found += to.raw[:count].decode()
        count = self.code.tokenizer_decode_end(state, to)
        return found + to.raw[:count].decode()
