"""Text from a language model: its program of C, built for this machine and called from Python.

Invariant: tokens, chances and texts are those of the C program; nothing is computed here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import MccError, Problem, WrongUse
from ..driver import Options
from ..llm import chat
from ..llm.program import program, with_tokenizer
from ..toolchain.build import compile_shared, find_compiler, load
from ..toolchain.host_library import TEXT_HOST
from ..toolchain.session import aligned_bytes
from . import cache
from .sampling import numbers, stop_strings

_CDEF = """
size_t text_session_bytes(void);
size_t text_arena_bytes(void);
const char *text_status(const void *session);
int32_t text_made(const void *session);
int text_begin(void *session, void *arena, size_t arena_bytes, const void *weights, size_t weights_bytes);
int text_restart(void *session);
void text_sampling(void *session, const float *numbers, int32_t top_k, uint64_t seed, int32_t keep);
void text_stop(void *session, const char *const *stop, size_t count);
int text_generate(void *session, const char *prompt, size_t bytes, int32_t most,
                  int (*told)(const char *, size_t, void *));
int text_ask(void *session, const char *system, const char *question, int32_t most,
             int (*told)(const char *, size_t, void *));
"""
_SHARED = "text.so"
_ENDS = ("stop", "most", "context", "caller")  # MCC_END_STOP and so on
_WRONG = {
    -1: ("there is nothing to go on with", "the prompt is empty, or has characters that are not UTF-8", "give a text"),
    -2: ("the prompt is too long", "there is room for no more tokens", "pass dims={'past': (0, N)} or keep=4"),
    -3: ("the model gives no numbers", "no logit is a number", "check its weights"),
    -5: (
        "this system message cannot be given",
        "a chat has begun, or its template takes no system message, or takes a word of it for a command",
        "leave it out",
    ),
    -6: ("the date is not known", "the chat template has it", "set the clock of this machine"),
}
OnText = Callable[[str], object]


class Text(str):
    """What a model wrote. `ended`: "stop" where the model ended it or wrote a stop string, "most" at as many tokens as
    were asked for, "context" where there was no room for more, "caller" where `told` gave False."""

    ended: str
    tokens: int

    def __new__(cls, text: str, ended: str, tokens: int) -> Text:
        made = super().__new__(cls, text)
        made.ended, made.tokens = ended, tokens
        return made


class Writer:
    """The text of one language model, as it grows."""

    def __init__(self, path: Path, options: Options, cc: str | None) -> None:
        with_tokenizer(path)
        self._no_chat = _chat_error(path)
        folder = _built(path, options, cc, self._no_chat is None)
        said = json.loads((folder / "out" / "report.json").read_bytes())
        self.chats = bool(said["language"]["chats"])
        library = load(folder / _SHARED, _CDEF)
        self._ffi, self._code = library.ffi, library.functions
        blob = folder / "out" / f"{said['prefix']}.mcb"
        self._weights = aligned_bytes(blob.stat().st_size)
        with blob.open("rb") as file:
            file.readinto(self._weights.data)
        size = self._code.text_arena_bytes()
        self._arena = aligned_bytes(size)
        self._session = np.zeros(self._code.text_session_bytes() // 8 + 1, np.uint64)
        parts = self._at(self._arena), size, self._at(self._weights), self._weights.size
        if not self._code.text_begin(self._at(self._session), *parts):
            raise self._refused()

    def _at(self, array: np.ndarray) -> Any:
        return self._ffi.cast("void *", array.ctypes.data)

    def _refused(self) -> WrongUse:
        why = self._ffi.string(self._code.text_status(self._at(self._session))).decode()
        return WrongUse(Problem("the model does not run", "", why, "load it again"))

    def restart(self) -> None:
        """The text is empty again."""
        if not self._code.text_restart(self._at(self._session)):
            raise self._refused()

    def generate(self, prompt: str, most: int, told: OnText | None, **how: Any) -> Text:
        how = _chosen({"most": most, **how})
        data = _encoded(prompt)
        return self._told(lambda tell: (self._code.text_generate, data, len(data), most, tell), told, how)

    def ask(self, question: str, system: str | None, most: int, told: OnText | None, **how: Any) -> Text:
        if self._no_chat is not None:
            raise self._no_chat
        if not self.chats:
            fix = "use generate, with the prompt as the model wants it"
            raise WrongUse(Problem("there is no chat template", "", "the model brings none", fix))
        how = _chosen({"most": most, **how})
        texts = [None if system is None else _encoded(system), _encoded(question)]
        if any(b"\0" in text for text in texts if text):
            raise WrongUse(Problem("a text has a character of number 0", "", "it ends texts in C", "leave it out"))
        words = self._ffi.NULL if texts[0] is None else texts[0]
        return self._told(lambda tell: (self._code.text_ask, words, texts[1], most, tell), told, how)

    def _told(self, call: Callable[[Any], tuple[Any, ...]], told: OnText | None, how: dict[str, Any]) -> Text:
        pieces: list[str] = []
        raised: list[BaseException] = []

        def tell(text: Any, size: int, _: Any) -> int:
            try:
                pieces.append(bytes(self._ffi.buffer(text, size)).decode())
                return int(told is not None and told(pieces[-1]) is False)
            except BaseException as error:  # carried through C
                raised.append(error)
                return 1

        kept = self._sample(how)
        function, *arguments = call(self._ffi.callback("int(const char *, size_t, void *)", tell))
        ended = function(self._at(self._session), *arguments)
        del kept
        if raised:
            raise raised[0]
        if ended < 0:
            raise self._refused() if ended == -4 else WrongUse(_problem(ended))
        return Text("".join(pieces), _ENDS[ended], self._code.text_made(self._at(self._session)))

    def _sample(self, how: Mapping[str, Any]) -> Any:
        """Gives what has to live as long as the call."""
        shares = [how[name] for name in ("temperature", "top_p", "min_p", "repetition_penalty")]
        keep = -1 if how["keep"] is None else how["keep"]
        self._code.text_sampling(
            self._at(self._session), self._ffi.new("float[]", shares), how["top_k"], how["seed"], keep
        )
        stops = [self._ffi.new("char[]", text) for text in how["stop"] or ()]
        kept = self._ffi.NULL if how["stop"] is None else self._ffi.new("const char *[]", stops), stops
        self._code.text_stop(self._at(self._session), kept[0], len(stops))
        return kept


def _chosen(given: Mapping[str, Any]) -> dict[str, Any]:
    stop = stop_strings(given["stop"]) if given.get("stop") is not None else None
    return {**numbers({name: value for name, value in given.items() if name != "stop"}), "stop": stop}


def _encoded(text: str) -> bytes:
    if not isinstance(text, str):
        raise TypeError(f"{text!r:.60} is not text")
    return text.encode(errors="surrogatepass")


def _problem(ended: int) -> Problem:
    what, why, fix = _WRONG[ended]
    return Problem(what, "", why, fix)


def _chat_error(path: Path) -> MccError | None:
    template = chat.found(path)
    try:
        if template:
            chat.compiled(template)
    except MccError as error:
        return error
    return None


def _built(path: Path, options: Options, cc: str | None, chats: bool) -> Path:
    target = options.resolved_target()
    compiler = find_compiler(cc or target.compiler)

    def make(folder: Path) -> None:
        made = program(path, options, chats)
        out = made.write(folder / "out")
        lines = [f'#include "{made.prefix}_text.h"', f"#define TEXT_NAME(name) {made.prefix}_##name"]
        lines += [f"#define TEXT_SIZE(name) {made.prefix.upper()}_##name"]
        lines += [f"#define TEXT_{name.upper()}" for name in ("chats", "dates") if made.report["language"][name]]
        (folder / "mcc_text_model.h").write_text("\n".join(lines) + "\n")
        sources = [each for each in sorted(out.glob("*.c")) if each.name != "main.c"]
        compile_shared(compiler, [*sources, TEXT_HOST], [folder, out, out / "runtime"], folder / _SHARED, target.cflags)

    files = sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else [path]
    return cache.entry(cache.key(b"llm %d" % chats, files, options, target, str(compiler)), make)
