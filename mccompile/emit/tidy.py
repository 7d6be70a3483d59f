"""The C of kernels without what templates and printers leave behind: brackets around what needs none, blocks in blocks,
positions that nothing reads.

Invariant: a compiler sees the same program. Names of one function are all different where one scope lies in another
(-Wshadow says so in tests), which is why the scopes of two blocks that end together may be one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|/\*.*?\*/')
_POSITION = re.compile(r"const mcc_index (\w+) = [^;,]*;")  # one alone
_OPENING = re.compile(r"(?:[(\[,]|\breturn|(?<![=<>!])=) ?\Z")  # before brackets with a whole operand in them
_REACH = len(" return ")  # letters that it looks at
_TERM = re.compile(r"(?<=[-+*,=(\[] )\((?!(?:float|double|unsigned|int|\w+_t)\)|mcc_)(\w+)\)(?= [-+*]|[;,)\]])")


def tidied(text: str) -> str:
    """Lines of a C function, not yet indented."""
    lines: list[str] = []
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("{ ") and not line.endswith("}"):
            lines += ["{", line[2:]]
        elif line:
            lines.append(line)
    return "\n".join(_plain(line) for line in _merged(_read(lines))) + "\n"


def _read(lines: list[str]) -> list[str]:
    """Without positions that nothing reads, such as that of the only row."""
    kept = list(lines)
    for place in reversed(range(len(lines))):
        declared = _POSITION.fullmatch(lines[place])
        if declared and not re.search(rf"\b{declared[1]}\b", "\n".join(_scope(kept, place + 1))):
            del kept[place]
    return kept


def _scope(lines: list[str], begin: int) -> Iterator[str]:
    """From a line on to the end of the block that it stands in."""
    depth = 0
    for line in lines[begin:]:
        yield line
        code = _LITERAL.sub("", line)
        depth += code.count("{") - code.count("}")
        if depth < 0:
            return


def _merged(lines: list[str]) -> list[str]:
    """Without blocks that end where the block around them does, unless one like them stands in front."""
    opened: list[int] = []  # places of lines that open blocks
    dropped: set[int] = set()
    comment = False
    for place, line in enumerate(lines):
        code = _LITERAL.sub("", line)
        if comment or "/*" in code or line.startswith("#"):
            comment = (comment or "/*" in code) and "*/" not in code
            continue
        for brace in re.findall(r"[{}]", code):
            if brace == "{":
                opened.append(place)
            elif opened:
                begin = opened.pop()
                before = lines[begin - 1] if begin else ""
                bare = line == "}" and lines[begin] == "{" and before.endswith(("{", ";"))
                if bare and place + 1 < len(lines) and lines[place + 1].startswith("}"):
                    dropped |= {begin, place}
    return [line for place, line in enumerate(lines) if place not in dropped]


def _plain(line: str) -> str:
    """Without brackets around a whole argument, subscript, right side or name."""
    if line.startswith(("#", "/*", "*")):
        return line
    masked = _LITERAL.sub(lambda found: "x" * len(found[0]), line)
    pairs: list[tuple[int, int]] = []
    stack: list[int] = []
    commas: set[int] = set()
    for place, letter in enumerate(masked):
        if letter in "([{":
            stack.append(place)
        elif letter in ")]}" and stack:
            pairs.append((stack.pop(), place))
        elif letter == "," and stack:
            commas.add(stack[-1])
    gone: set[int] = set()
    for begin, end in pairs:
        whole = _OPENING.search(masked[max(0, begin - _REACH) : begin]) and masked[end + 1 : end + 2] in set(")],;")
        if masked[begin] == "(" and whole and begin not in commas:
            gone |= {begin, end}
    line = "".join(letter for place, letter in enumerate(line) if place not in gone)
    return _TERM.sub(r"\1", line)
