"""Programs of language models write the text that their definition gives, and end clearly."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnxruntime import InferenceSession

from mccompile.base.errors import BadFile, MccError, UnsupportedModel, WrongUse
from mccompile.driver import Options
from mccompile.frontend.load import read_proto
from mccompile.llm.program import program

pytest.importorskip("tokenizers")

from tests.thorough import some

from . import models

_DIMS = {"past": (0, 40), "tokens": (1, 4)}
_STRICT = (
    "-O1 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -fsanitize=undefined -fsanitize-undefined-trap-on-error"
)
_PROMPT = "the time is <|end|> once"


def built(source: Path, folder: Path, dims: Mapping[str, tuple[int, int]] = _DIMS, strict: bool = True) -> Path:
    """The program; what others have built strictly is built quickly."""
    program(source, Options(dims=dims, name="tiny")).write(folder)
    flags = _STRICT if strict else "-O0"
    subprocess.run(["make", "-C", folder, f"CFLAGS={flags}", "CC=gcc"], check=True, capture_output=True)
    return folder / "tiny"


def said(code: Path, *arguments: str | bytes, status: int = 0) -> str:
    done = subprocess.run([code, *arguments], capture_output=True)
    assert done.returncode == status, done.stderr
    return (done.stdout if status == 0 else done.stderr).decode().removesuffix("\n").rstrip("\ufffd")


@some(1, "family", ["llama3", "qwen2", "llama2"])
def test_a_folder_of_a_llama_writes_the_text_of_its_definition(family: str, tmp_path: Path) -> None:
    made, weights = models.llama(tmp_path / "tiny", family)
    code = built(tmp_path / "tiny", tmp_path / "out")
    prompt = made.encode(_PROMPT).ids
    count = 8 if family == "llama2" else 12  # behind these come bytes that are not text, each of which is told by us
    wanted = models.continued(prompt, weights, count)
    assert said(code, "-n", str(count), _PROMPT) == _PROMPT + shown(made, wanted)


def shown(made: Any, tokens: list[int]) -> str:
    """Of tokens behind others: a space in front stays. A character that lacks bytes at the end has no text."""
    before = made.encode("x", add_special_tokens=False).ids
    return str(made.decode([*before, *tokens])).removeprefix(made.decode(before)).rstrip("\ufffd")


def test_a_folder_of_a_gpt2_does_token_by_token(tmp_path: Path) -> None:
    made, weights = models.gpt2(tmp_path / "tiny")
    code = built(tmp_path / "tiny", tmp_path / "out", {"past": (0, 40), "tokens": (1, 1)})
    wanted = models.continued(made.encode(_PROMPT).ids, weights, 12, groups=4, turns=False)
    assert said(code, "-n", "12", _PROMPT) == _PROMPT + shown(made, wanted)
    room = "there is room for 41 tokens, and --dim past=0..N makes room for N + 1"
    done = subprocess.run([code, "-n", "99", _PROMPT], capture_output=True, check=True)
    assert done.stderr.decode() == f"the text ends: {room}; -c 4 goes on without the oldest\n"
    assert said(code, _PROMPT * 9, status=1) == f"the prompt is too long: {room}"


@some(1, ("family", "keep"), [("gpt2", 4), ("llama3", 0), ("llama3", 4)])
def test_a_text_goes_on_where_the_context_is_full(family: str, keep: int, tmp_path: Path) -> None:
    gpt = family == "gpt2"
    made, weights = models.gpt2(tmp_path / "tiny") if gpt else models.llama(tmp_path / "tiny", family)
    code = built(tmp_path / "tiny", tmp_path / "out", {"past": (0, 15), "tokens": (1, 4)}, strict=False)
    how: dict[str, Any] = {"groups": 4, "turns": False} if gpt else {}
    context, wanted = made.encode(_PROMPT).ids, []
    for _ in range(40):
        wanted += models.continued(context, weights, 1, **how)
        if len(context) == 16:
            del context[keep : keep + (17 - keep) // 2]
        context.append(wanted[-1])
    assert said(code, "-n", "40", "-c", str(keep), _PROMPT) == _PROMPT + shown(made, wanted)


def test_a_text_has_no_end_where_states_have_a_fixed_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mccompile.llm.program.MOST_CONTEXT", 13)
    models.rwkv(tmp_path / "tiny")
    code = built(tmp_path / "tiny", tmp_path / "out", {"tokens": (1, 4)})
    session = InferenceSession(read_proto(tmp_path / "tiny").SerializeToString())
    kept = {each.name: np.zeros(each.shape, np.float32) for each in session.get_inputs()[1:]}
    made = models.of_bytes("llama3")
    given, wanted = made.encode(_PROMPT).ids, list[int]()
    for _ in range(60):
        logits, *states = session.run(None, {"input_ids": np.array([given]), **kept})
        kept = dict(zip(kept, states, strict=True))
        given = [int(logits.argmax())]
        wanted += given
    assert said(code, "-n", "60", _PROMPT) == _PROMPT + shown(made, wanted)


def test_a_gpt2_has_no_room_behind_its_positions(tmp_path: Path) -> None:
    models.gpt2(tmp_path / "tiny")
    program(tmp_path / "tiny", Options(dims={"past": (0, 60), "tokens": (1, 4)}))
    with pytest.raises(WrongUse, match=r"use --dim past=0\.\.60,tokens=1\.\.4"):
        program(tmp_path / "tiny", Options(dims={"past": (0, 61), "tokens": (1, 4)}))
    with pytest.raises(WrongUse, match=r"use --dim past=0\.\.48,tokens=1\.\.16"):
        program(tmp_path / "tiny", Options(dims={"past": (0, 60)}))


def test_a_gguf_file_with_merges_has_the_tokens_of_its_tokenizer(tmp_path: Path) -> None:
    made = models.of_bytes("llama3")
    told = json.loads(made.to_str())
    tokens = [made.id_to_token(n) for n in range(made.get_vocab_size())]
    special = {each["content"]: 3 if each["special"] else 4 for each in told["added_tokens"]}
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in told["model"]["merges"]]
    words = {"model": "gpt2", "pre": "llama-bpe", "tokens": tokens, "merges": merges}
    words |= {"token_type": [special.get(token, 1) for token in tokens], "bos_token_id": made.token_to_id("<s>")}
    weights = models.gguf(tmp_path / "a.gguf", {f"tokenizer.ggml.{name}": value for name, value in words.items()})
    code = built(tmp_path / "a.gguf", tmp_path / "out")
    wanted = models.continued(made.encode(_PROMPT).ids, weights, 12)
    assert said(code, "-n", "12", _PROMPT) == _PROMPT + shown(made, wanted)


def _scored() -> dict[str, Any]:
    letters = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *"\u2581theimsa"]
    tokens = [*letters, "\u2581t", "he", "th", "\u2581the", "im", "e\u2581"]
    scores = [0.0] * len(letters) + [-1.0, -2.0, -3.0, -4.0, -4.0, -9.0]
    types = [2, 3, 3] + [6] * 256 + [1] * (len(tokens) - 259)
    return {"model": "llama", "tokens": tokens, "scores": scores, "token_type": types, "bos_token_id": 1}


def test_a_gguf_file_with_scores_joins_the_highest_first(tmp_path: Path) -> None:
    words = _scored()
    weights = models.gguf(tmp_path / "a.gguf", {f"tokenizer.ggml.{name}": value for name, value in words.items()})
    code = built(tmp_path / "a.gguf", tmp_path / "out")
    pieces = ["<s>", "\u2581the", "\u2581t", "im", "e", "<0xC3>", "<0xA9>"]
    wanted = models.continued([words["tokens"].index(piece) for piece in pieces], weights, 5)
    data = b""
    for token in wanted:
        text = words["tokens"][token]
        data += b"" if token in (1, 2) else bytes([int(text[3:5], 16)]) if text[:3] == "<0x" else text.encode()
    text = data.decode(errors="replace").replace("\u2581", " ")
    found = said(code, "-n", "5", "the time\u00e9")
    assert found.replace("\ufffd", "") == "the time\u00e9" + text.replace("\ufffd", "")


_HARNESS = """
#include <stdio.h>
#include "tiny_text.h"
static MCC_ALIGNED(TINY_ARENA_ALIGN) uint8_t arena[TINY_ARENA_BYTES];
static MCC_ALIGNED(16) uint8_t weights[TINY_WEIGHTS_BYTES];
static uint8_t saved[TINY_SESSION_BYTES], other[TINY_SESSION_BYTES];
static tiny_session s;
static char text[2][4096];
static size_t length;
static int told(const char *piece, size_t bytes, void *user)
{
    char *const to = (char *)user;
    (void)memcpy(to + length, piece, bytes);
    length += bytes;
    to[length] = '\\0';
    return 0;
}
static int refused(const char *piece, size_t bytes, void *user)
{
    return piece == NULL || bytes == 0u || user != NULL ? 0 : 1;
}
#define CHECK(x) do { if (!(x)) { printf("line %d: %s\\n", __LINE__, #x); return 1; } } while (0)
int main(void)
{
    uint32_t i;
    FILE *const f = fopen("out/tiny.mcb", "rb");
    CHECK(f != NULL && fread(weights, 1u, sizeof weights, f) == sizeof weights);
    CHECK(tiny_begin(&s, arena, sizeof arena, weights, sizeof weights) == MCC_OK);
    CHECK(tiny_generate(&s, "\\xff", 1u, 4, told, text[0]) == MCC_END_TEXT);
    CHECK(tiny_generate(&s, text[1], sizeof text[1], 4, told, text[0]) == MCC_END_LONG && s.count == 0);
    CHECK(tiny_generate(&s, "the time", 8u, 20, told, text[0]) == MCC_END_MOST && s.made == 20);
    CHECK(tiny_restart(&s) == MCC_OK);
    length = 0u;
    CHECK(tiny_generate(&s, "the time", 8u, 0, told, text[1]) == MCC_END_MOST && s.made == 0);
    for (i = 0u; i < 20u; i++) {
        CHECK(tiny_generate(&s, "", 0u, 1, told, text[1]) == MCC_END_MOST && s.made == 1);
        tiny_save_session(&s, i < 7u ? saved : other);
        if (i == 6u) CHECK(tiny_restart(&s) == MCC_OK);
        CHECK(i % 2u != 0u || tiny_load_session(&s, i < 7u ? saved : other));
    }
    printf("%s|%s\\n", text[0], text[1]);
    CHECK(tiny_generate(&s, "", 0u, 1000, refused, NULL) == MCC_END_CALLER && s.made <= 3);
@FULL@    for (i = 0u; i < 4000u; i++) {
        length = 0u;
        (void)memcpy(other, saved, sizeof other);
        other[(i * 7919u) % (i < 3000u ? 200u : sizeof other)] ^= (uint8_t)(1u << i % 8u);
        (void)tiny_load_session(&s, other);
        if (i % 50u == 0u) (void)tiny_generate(&s, "a", 1u, 3, told, text[1]);
    }
    return 0;
}
"""

_FULL = """
    CHECK(tiny_generate(&s, "", 0u, 1000, told, text[1]) == MCC_END_CONTEXT && s.count == TINY_CONTEXT);
    CHECK(tiny_generate(&s, "", 0u, 1000, told, text[1]) == MCC_END_CONTEXT && s.made == 0);
    CHECK(tiny_generate(&s, "more", 4u, 1000, told, text[1]) == MCC_END_LONG && s.count == TINY_CONTEXT);
    s.keep = TINY_CONTEXT;
    CHECK(tiny_generate(&s, "more", 4u, 1000, told, text[1]) == MCC_END_LONG && s.count == TINY_CONTEXT);
    CHECK(tiny_generate(&s, "", 0u, 1000, told, text[1]) == MCC_END_CONTEXT && s.made == 0);
    s.keep = 2;
    length = 0u;
    CHECK(tiny_generate(&s, "more", 4u, 100, told, text[1]) == MCC_END_MOST && s.made == 100);
    CHECK(tiny_generate(&s, text[1], 300u, 4, told, text[1]) == MCC_END_LONG && s.count == 2);
"""
_ENDLESS = """
    length = 0u;
    CHECK(tiny_generate(&s, "", 0u, 500, told, text[0]) == MCC_END_MOST && s.made == 500 && s.count <= TINY_CONTEXT);
    tiny_save_session(&s, saved);
    length = 0u;
    CHECK(tiny_generate(&s, " more", 5u, 60, told, text[0]) == MCC_END_MOST);
    CHECK(tiny_restart(&s) == MCC_OK && tiny_load_session(&s, saved));
    length = 0u;
    CHECK(tiny_generate(&s, " more", 5u, 60, told, text[1]) == MCC_END_MOST && strcmp(text[0], text[1]) == 0);
    CHECK(tiny_generate(&s, text[1], 300u, 4, told, text[1]) == MCC_END_LONG && s.count > 0);
"""


@pytest.mark.parametrize("family", ["llama", "rwkv"])
def test_a_session_goes_on_ends_and_is_saved(family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if family == "rwkv":  # no state grows
        monkeypatch.setattr("mccompile.llm.program.MOST_CONTEXT", 41)
        models.rwkv(tmp_path / "tiny")
    else:
        models.llama(tmp_path / "tiny", "llama3")
    dims = {"tokens": (1, 4)} if family == "rwkv" else _DIMS
    program(tmp_path / "tiny", Options(dims=dims, name="tiny")).write(tmp_path / "out")
    (tmp_path / "test.c").write_text(_HARNESS.replace("@FULL@", _ENDLESS if family == "rwkv" else _FULL))
    sources = ["test.c", *(f"out/tiny{part}.c" for part in ("", "_kernels", "_tokens", "_text"))]
    flags = ["-std=c99", "-O1", "-g", "-fsanitize=address,undefined", "-Iout", "-Iout/runtime"]
    subprocess.run(["gcc", *flags, *sources, "-o", "test", "-lm"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "test"], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, (done.stdout, done.stderr)
    one, other = done.stdout.decode().rstrip("\n").split("|", 1)
    assert one == other  # also where a call ends within a character


def test_stops_are_those_of_the_folder_and_chance_has_a_seed(tmp_path: Path) -> None:
    made, weights = models.llama(tmp_path / "tiny", "llama3")
    wanted = models.continued(made.encode(_PROMPT).ids, weights, 12)
    stop = wanted[6]
    (tmp_path / "tiny" / "generation_config.json").write_text(json.dumps({"eos_token_id": [stop]}))
    code = built(tmp_path / "tiny", tmp_path / "out")
    text = shown(made, wanted[: wanted.index(stop)])
    assert said(code, "-n", "12", _PROMPT) == _PROMPT + text
    chance = ["-t", "1", "-k", "50", "-p", "0.9", "-m", "0.01", "-r", "1.1", "-s"]
    assert said(code, *chance, "3", _PROMPT) == said(code, *chance, "3", _PROMPT) != said(code, *chance, "4", _PROMPT)
    assert said(code, *chance, str(2**64 - 1), _PROMPT) != said(code, *chance, str(2**64 - 2), _PROMPT)
    assert "not valid UTF-8" in said(code, b"\xff", status=1)
    assert said(code, "--help").startswith("usage: tiny [-n tokens]")
    assert said(code, "-n", "0", "--", "-x") == "-x"
    for wrong, why in (
        (["-n"], "-n needs a whole number from 0 to 2147483647"),
        (["-n", "2.5", "a"], "-n needs a whole number"),
        (["-s", "18446744073709551616", "a"], "-s needs a whole number from 0 to 18446744073709551615"),
        (["-s", "-1", "a"], "-s needs a whole number"),
        (["-p", "1.5", "a"], "-p needs a number from 0 to 1"),
        (["-t", "0.8x"], "-t needs a number"),
        (["--most", "3"], "--most: there is no such option"),
        (["-n3"], "-n3: there is no such option"),
        (["once", "upon"], "upon: a second prompt"),
        (["-w"], "a text is missing"),
    ):
        assert why in said(code, *wrong, status=2)
    shutil.copy(tmp_path / "out" / "tiny.c", tmp_path / "no.mcb")
    assert said(code, "-w", str(tmp_path / "no.mcb"), status=1)


def test_a_text_ends_in_front_of_a_stop_string(tmp_path: Path) -> None:
    models.llama(tmp_path / "tiny", "llama3")
    code = built(tmp_path / "tiny", tmp_path / "out", strict=False)
    text = said(code, "-n", "12", _PROMPT).removeprefix(_PROMPT)
    for size in (1, 3, 9):
        for place in range(0, 27, 4):
            stop = text[place : place + size]
            wanted = text[: text.index(stop)]
            assert said(code, "-n", "12", "-e", "not there", "-e", stop, _PROMPT) == _PROMPT + wanted
    assert said(code, "-n", "12", "-e", text[-3:] + "more", _PROMPT) == _PROMPT + text
    assert "at most 16 stop strings" in said(code, *["-e", "a"] * 17, _PROMPT, status=2)


def test_stop_strings_of_generation_config_count_where_none_are_given(tmp_path: Path) -> None:
    models.llama(tmp_path / "tiny", "llama3")
    config = tmp_path / "tiny" / "generation_config.json"
    text = said(built(tmp_path / "tiny", tmp_path / "out", strict=False), "-n", "12", _PROMPT).removeprefix(_PROMPT)
    stop = text[7:10]
    config.write_text(json.dumps({"stop_strings": ["not there", stop]}))
    code = built(tmp_path / "tiny", tmp_path / "again")
    assert said(code, "-n", "12", _PROMPT) == _PROMPT + text[: text.index(stop)]
    assert said(code, "-n", "12", "-e", "not there", _PROMPT) == _PROMPT + text
    for wrong in ("", 3, ["a", None], ["\0"]):
        config.write_text(json.dumps({"stop_strings": wrong}))
        with pytest.raises(MccError, match="stop_strings cannot be read"):
            program(tmp_path / "tiny", Options())


def test_what_is_no_language_model_with_its_tokenizer_is_refused(tmp_path: Path) -> None:
    models.llama(tmp_path / "tiny", "llama3")
    (tmp_path / "tiny" / "tokenizer.json").rename(tmp_path / "a.json")
    with pytest.raises(BadFile, match="there is no tokenizer"):
        program(tmp_path / "tiny", Options())
    with pytest.raises(WrongUse, match=r"use mccompile .*net\.onnx -o out"):
        program(tmp_path / "net.onnx", Options())
    made = models.of_bytes("llama3")
    made.add_tokens(["another"])
    made.save(str(tmp_path / "tiny" / "tokenizer.json"))
    with pytest.raises(UnsupportedModel, match="logits for 703"):
        program(tmp_path / "tiny", Options())


def test_damaged_tokenizers_of_gguf_files_are_refused(tmp_path: Path) -> None:
    words = {f"tokenizer.ggml.{name}": value for name, value in _scored().items()}
    path, chance = tmp_path / "a.gguf", np.random.default_rng(5)
    models.gguf(path, words)
    whole = path.read_bytes()
    from mccompile.tokenizer.gguf import read

    models.gguf(path, {**words, "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.eom_token_id": 260})
    made, stops = read(path)
    assert stops == [2, 260] and made.added[0].special and made.added[0].text == "<unk>"
    for change, why in (
        ({"model": "bert"}, "'bert'"),
        ({"scores": [0.5]}, "1 scores"),
        ({"tokens": ["a"]}, "types for 1"),
    ):
        models.gguf(path, {**words, **{f"tokenizer.ggml.{name}": value for name, value in change.items()}})
        with pytest.raises(MccError, match=why) as refused:
            read(path)
        assert all(problem.fix for problem in refused.value.problems)
    for _ in range(200):
        data = bytearray(whole)
        for place in chance.integers(0, 9000, 3):
            data[place] = chance.integers(256)
        path.write_bytes(data)
        try:
            read(path)
        except MccError as error:
            assert str(path) in str(error)
