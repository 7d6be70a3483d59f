"""C functions of the user's own in place of operators: what `--external` asks for.

A subject is an operator (`Swish`, `com.acme::Blur`), a node by its name, or what lies between tensors (`x..y`,
`a+b..y`): all that is needed to make those behind the dots of those in front.
"""

from __future__ import annotations

import re
import shlex

from .dtypes import DTYPES
from .near import meant
from .records import dataclass
from .tensor import TensorType

MOST_ALIGN = 64  # bytes; constants lie at multiples of that
_WORDS = ("include=", "python=", "result=", "workspace=", "align=", "nhwc", "strided")


@dataclass(frozen=True)
class OwnFunction:
    subject: str
    name: str  # of the C function
    include: str = ""  # the file that declares it, or defines it as static
    python: str = ""  # a file with `types(operands, attributes)`, `run(operands, attributes)` or both
    results: tuple[TensorType, ...] = ()  # where neither the model nor Python says them
    workspace: int = 0  # bytes
    align: int = 1  # bytes, of operands, results and workspace
    nhwc: bool = False  # pictures and their weights are channels-last
    strided: bool = False  # tensors are handed over as they lie in memory; else dense

    @property
    def ends(self) -> tuple[list[str], list[str]] | None:
        """The tensors before and behind a sub-graph, where that is asked for."""
        given, dots, made = self.subject.partition("..")
        return (given.split("+"), made.split("+")) if dots and given and made else None

    def names(self, domain: str, operator: str) -> bool:
        return self.subject in (f"{domain}::{operator}" if domain else operator, operator)


def skeleton(name: str, header: str) -> str:
    """A command for a shell: it writes the header with the function, which does not build until it computes."""
    lines = (
        '#include "mcc_external.h"',
        f"static void {name}(const mcc_external *call)",
        "{",
        "#error write call->results[0].data, computed of call->operands[0].data and its shape",
        "}",
    )
    return f"printf '%s\\n' {' '.join(shlex.quote(line) for line in lines)} > {shlex.quote(header)}"


def own_function(text: str) -> OwnFunction:
    """`SUBJECT=FUNCTION,include=acme.h,workspace=1024`; ValueError where it is none."""
    subject, equals, rest = text.partition("=")
    name, *words = rest.split(",")
    if not subject or not equals or not name.isidentifier() or not name.isascii():
        form = "OPERATOR=FUNCTION, NODE=FUNCTION or TENSOR..TENSOR=FUNCTION"
        raise ValueError(f"{text!r} is not {form}; did you mean --external {_likely(subject, name)}?")
    found = OwnFunction(subject, name)
    for word in words:
        what, _, value = word.partition("=")
        found = _with(found, what, value, word)
    return found


def _likely(subject: str, name: str) -> str:
    """An operator alone, or with a file in place of its function."""
    library = re.fullmatch(r"(?:.*/)?(?:lib)?(\w+)\.(?:so|a|dll|dylib|o|c|h)", subject)
    if library and not name:
        return f"OPERATOR={library[1]},include={library[1]}.h"
    stem, dot, ending = name.rpartition(".")
    function = re.sub(r"\W", "_", (stem if dot else name or subject).rpartition("/")[2])
    return f"{subject or 'OPERATOR'}={function},include={name if ending == 'h' and dot else f'{function}.h'}"


def _with(found: OwnFunction, what: str, value: str, word: str) -> OwnFunction:
    fields = dict(vars(found))
    if what in ("nhwc", "strided") and not value:
        fields[what] = True
    elif what in ("include", "python") and value:
        fields[what] = value
    elif what == "result":
        fields["results"] = (*found.results, _type(value))
    elif what in ("workspace", "align") and value.isdecimal():
        fields[what] = int(value)
    else:
        close = meant(word, _WORDS)
        raise ValueError(f"{word!r} is not one of {', '.join(_WORDS)}" + (f"; {close}" if close else ""))
    made = OwnFunction(**fields)
    if made.align not in (1, 2, 4, 8, 16, 32, MOST_ALIGN):
        raise ValueError(f"align={value} is not a power of two up to {MOST_ALIGN}")
    return made


def _type(text: str) -> TensorType:
    """`f32:1x8x8`; `f32:` is one number."""
    dtype, _, sizes = text.partition(":")
    parts = sizes.split("x") if sizes else []
    if dtype not in DTYPES or not all(part.isdecimal() for part in parts):
        raise ValueError(f"{text!r} is not a type of a result, such as f32:1x8x8x3")
    return TensorType(DTYPES[dtype], tuple(map(int, parts)))
