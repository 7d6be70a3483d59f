"""A language model as a folder of C: what `mccompile llm` writes, of a folder of Hugging Face, one of an export to
ONNX, or a GGUF file.

Invariant: network and tokenizer are those of the other commands; what is added here only joins them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

from ..base.errors import BadFile, MccError, Problem, UnsupportedModel, WrongUse
from ..base.near import near_file
from ..base.records import dataclass
from ..driver import Options
from ..driver import compile as compile_model
from ..emit.blob import Carrier
from ..emit.building import build_name, cmake_tools, make_tools
from ..emit.files import Files
from ..emit.folder import MARK, with_report, write_folder
from ..emit.model import identity_c, state_bytes
from ..emit.package import Package
from ..emit.render import TEMPLATES, Source, render, render_c
from ..emit.runtime import runtime_headers
from ..importers.decoders.as_onnx import MOST_CONTEXT
from ..tokenizer import gguf, reading
from ..tokenizer.description import Tokenizer, unsupported
from ..tokenizer.library import printed
from ..tokenizer.regex import NotUnderstood
from . import chat
from .pieces import Chat, parts
from .stops import Stops, stops_of

_HERE = Path(__file__).parent
_LINE = 48  # characters of a string on a line
_PROMPT = 8  # bytes of a prompt for each token that has room
_STOP_STRINGS = 16  # that `main.c` takes
_REPLACED = ("main.c", "Makefile", "CMakeLists.txt", MARK)


@dataclass(frozen=True)
class Program:
    """A program as files; nothing is on disk until `write`."""

    prefix: str
    report: Mapping[str, Any]
    files: Files

    def write(self, folder: str | Path, force: bool = False) -> Path:
        """Writes the files; gives the folder."""
        write_folder(Path(folder), self.files, force)
        return Path(folder)


def program(path: Path, options: Options, chats: bool = True) -> Program:
    """Tokenizer, network and sampler of a folder or a GGUF file; with its chat template if `chats`."""
    is_gguf = with_tokenizer(path)
    words, tokens = gguf.read(path) if is_gguf else (reading.read(path), ())
    stops = Stops(sorted(set(tokens))) if is_gguf else stops_of(path)
    template = chat.found(path) if chats else None
    try:
        chatting = chat.compiled(template) if template else None
    except MccError as error:
        raise reading.placed(path, error) from None
    package = compile_model(path, replace(options, blob=Carrier.EXTERNAL, advance=not options.slices))
    try:
        return _joined(package, words, stops, chatting)
    except NotUnderstood as error:
        raise reading.placed(path, unsupported("its words", f"a regular expression with {error}")) from None
    except MccError as error:
        raise reading.placed(path, error) from None


def with_tokenizer(path: Path) -> bool:
    """Is it a GGUF file? What is not a folder either is refused."""
    if path.suffix == ".gguf" and not path.exists():
        fix = near_file(path, "*.gguf") or "name a GGUF file that exists, or a folder with tokenizer.json"
        raise BadFile(Problem(f"cannot read {path.name}", str(path), "No such file or directory", fix))
    is_gguf = path.is_file() and path.suffix == ".gguf"
    if not path.exists() and path.suffix != ".onnx":
        asked = f"snapshot_download('{path}', local_dir='{path}')"
        fix = near_file(path, "*") or (
            f'pip install huggingface_hub\npython -c "from huggingface_hub import snapshot_download; {asked}"\n'
            "# where that is the name of a model there"
        )
        raise BadFile(Problem(f"cannot read {path.name}", str(path), "No such file or directory", fix))
    if not (is_gguf or path.is_dir()):
        why = "a program needs the tokenizer of the model, which a folder with tokenizer.json and a GGUF file have"
        fix = f"to compile the network alone, use mccompile {path} -o out"
        raise WrongUse(Problem("no language model with its tokenizer", str(path), why, fix))
    return is_gguf


def _joined(package: Package, words: Tokenizer, stops: Stops, chatting: Chat | None) -> Program:
    plan, report = package.plan, json.loads(package.files[MARK])
    prefix, vocabulary = plan.prefix, int(report["outputs"][0]["shape"][-1])
    if max(words.texts) >= vocabulary:
        why = f"it has tokens up to {max(words.texts)}, and the network logits for {vocabulary}"
        raise UnsupportedModel(
            Problem("the tokenizer is not that of the network", "", why, "take it of the same model")
        )
    if len(plan.arenas) != 1:
        why = f"{plan.target} has memories apart from each other"
        raise UnsupportedModel(Problem("a program needs one arena", "", why, "use --target generic"))
    batch = next((symbol.high for symbol in plan.given if symbol.name.endswith("tokens")), 1)
    grows = any(state.tensor.symbol == "past" for state in plan.states)
    context = MOST_CONTEXT  # of what is kept of a text, where states have a fixed size
    if grows:
        rows = max(int(size) for state in report["states"] for size in state["shape"][2:3])
        context = rows - batch + 1  # a run of one token has room behind all others
    tokens, facts = printed(words, f"{prefix}_tokens")
    told: dict[str, Any] = {
        "prefix": prefix,
        "P": prefix.upper(),
        "N": prefix.upper(),
        "title": plan.name.replace("*/", ""),
    }
    told |= {
        "context": context,
        "batch": batch,
        "vocabulary": vocabulary,
        "prompt": _PROMPT * context,
        "stops": stops.tokens,
    }
    told |= {"stop_strings": [_in_c(text) for text in stops.strings], "most_stop_strings": _STOP_STRINGS}
    told |= {"answer_end": _answer_end(words, chatting) if chatting else -1}
    told |= {"advances": plan.advances, "grows": grows}
    told |= {"program": build_name(prefix), "chat": chatting, "piece": _piece}
    told |= {"commands": [_in_c(word) for word in chatting.words] if chatting else []}
    told |= {"trims": bool(chatting and (chatting.needs or any(astuple(chatting.trims))))}
    told |= {"ready": identity_c(package.identity)["ready"]}
    own = {f"{prefix}_text.h": "text.h.j2", f"{prefix}_text.c": "text.c.j2", "main.c": "main.c.j2"}
    sources: dict[str, Source] = {name: source for name, source in tokens.items() if name != "main.c"}
    sources |= {file: render_c(_HERE / template, told) for file, template in own.items()}
    texts = {name: source.text for name, source in sources.items()}
    texts |= runtime_headers(name for source in sources.values() for name in source.includes)
    how = {**told, "library": build_name(prefix), "carrier": Carrier.EXTERNAL, "file_flags": []}
    how["sources"] = [f"{prefix}{part}.c" for part in ("", "_kernels", "_tokens", "_text")]
    texts["Makefile"] = render(TEMPLATES / "Makefile.j2", how | {"tools": make_tools([plan.build])})
    texts["CMakeLists.txt"] = render(
        TEMPLATES / "CMakeLists.txt.j2", how | {"tools": cmake_tools([plan.build], prefix)}
    )
    kept = package.files.only(name for name in package.files if name not in _REPLACED)
    report["language"] = {
        **facts,
        "context": context,
        "batch": batch,
        "cache_bytes": state_bytes(plan),
        "stops": list(stops.tokens),
        "stop_strings": list(stops.strings),
        "chats": chatting is not None,
        "systems": bool(chatting and chatting.system),
        "dates": bool(chatting and chatting.dates),
    }
    files = kept | {name: text.encode() for name, text in texts.items()}
    return Program(prefix, report, with_report(files, report))


def _answer_end(words: Tokenizer, chatting: Chat) -> int:
    """The special token that the template has behind an answer; -1 without one."""
    behind = chatting.again.lstrip()
    found = [each for each in words.added if each.special and behind.startswith(each.text)]
    return max(found, key=lambda each: len(each.text)).token if found else -1


def _piece(piece: str) -> str:
    """Statements in C for a piece of a chat template."""
    lines = [
        f"put_date(s, &size, {_in_c(part)});" if is_date else f"put(s, &size, {_in_c(part)}, {len(part.encode())}u);"
        for part, is_date in parts(piece)
    ]
    return "\n        ".join(lines) or 'put(s, &size, "", 0u);'


def _in_c(text: str) -> str:
    """A text in C, which may go over several lines."""
    plain = set(map(chr, range(32, 127))) - set('"\\?')
    letters = [c if c in plain else "".join(f"\\{byte:03o}" for byte in c.encode()) for c in text]
    lines = ["".join(letters[at : at + _LINE]) for at in range(0, len(letters), _LINE)]
    return "\n        ".join(f'"{line}"' for line in lines) if lines else '""'
