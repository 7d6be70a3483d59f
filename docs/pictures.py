"""Draws the pictures of README and of the site: `python docs/pictures.py` writes docs/images/.

memory_map.svg is the arena of the digit classifier over the steps of a run, from its report. demo.svg is a recording of
`make demo`: what it really prints on a terminal, when it prints it (waits are cut to half a second).
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

TOP = Path(__file__).resolve().parent.parent
IMAGES = Path(__file__).resolve().parent / "images"
MODEL = TOP / "examples" / "digits" / "digits.onnx"
sys.path.insert(0, str(TOP))

_COLUMNS, _ROWS = 106, 30  # of the terminal
_LINE, _CHARACTER = 17.0, 7.2  # size of a cell
_HEIGHT = 320  # of the memory map
_LONGEST_WAIT, _LAST_WAIT = 0.5, 6.0  # seconds
_ESCAPE = re.compile(r"\x1b\[([\d;]*)m")
_STYLE = """.s{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d7dde4;white-space:pre}
.bold{font-weight:bold;fill:#fff}.green{fill:#7fd88f}.red{fill:#f08a7a}.command{fill:#8cc3f5}"""


def memory_map() -> str:
    """The memory map of `mccompile studio` as a picture of its own, with names in the large blocks."""
    from mccompile import compile

    found = _map(compile(MODEL).report)
    left, top, height = 70, 36, _HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1090 {height + 90}" font-family="system-ui,sans-serif">',
        f'<rect width="1090" height="{height + 90}" fill="#fff" rx="8"/>',
        f'<text x="{left}" y="22" font-size="15" fill="#1c2733">The arena of the digits: {found.bytes:,} bytes</text>',
    ]
    peak = max((alive(found.blocks, found.steps, step) for step in range(found.steps)), key=top_of)
    for block in sorted(found.blocks, key=lambda block: -block.bytes):  # what lies over another one for a while is seen
        x, y = left + block.x, top + block.y
        colour = "#e9a48d" if block in peak else "#9cc4ec"
        size = f'width="{block.width}" height="{block.height}"'
        parts.append(f'<rect x="{x:.2f}" y="{y:.2f}" {size} fill="{colour}" stroke="#fff" stroke-width="1.2"/>')
        name = f"{block.name.removesuffix('/last').split('/')[0]}, {block.bytes:,}"
        if block.height >= 15 and block.width >= 6.2 * len(name) + 8:
            parts.append(f'<text x="{x + 5:.2f}" y="{y + 12:.2f}" font-size="11" fill="#1c2733">{escape(name)}</text>')
    for nbytes in range(0, found.bytes + 1, 1024):
        y = top + height * (1 - nbytes / found.bytes)
        parts.append(
            f'<text x="{left - 6}" y="{y + 4:.2f}" font-size="11" text-anchor="end" fill="#5b6b7b">{nbytes:,}</text>'
        )
    for step in range(found.steps):
        x = left + 1000 * (step + 0.5) / found.steps
        place = f'x="{x:.2f}" y="{top + height + 16}" text-anchor="middle"'
        parts.append(f'<text {place} font-size="11" fill="#5b6b7b">{step}</text>')
    legend = "Across: steps of a run. Up: bytes. Red: what is alive at the peak, below which no plan can be."
    parts.append(f'<text x="{left}" y="{top + height + 40}" font-size="13" fill="#5b6b7b">{legend}</text>')
    return "\n".join([*parts, "</svg>", ""])


class _Block(NamedTuple):
    name: str
    bytes: int
    x: float
    y: float
    width: float
    height: float


class _Map(NamedTuple):
    bytes: int
    steps: int
    blocks: tuple[_Block, ...]


def _map(report: Mapping[str, Any]) -> _Map:
    """Where the buffers of a report lie: across 1000 by time, up by bytes."""
    size, end = report["arena_bytes"], max(b["end"] for b in report["buffers"])
    across, up = 1000 / end, _HEIGHT / size
    blocks = (
        _Block(
            b["name"],
            b["high"] - b["low"],
            round(b["start"] * across, 2),
            round(_HEIGHT - b["high"] * up, 2),
            round((b["end"] - b["start"]) * across, 2),
            round((b["high"] - b["low"]) * up, 2),
        )
        for b in report["buffers"]
    )
    return _Map(size, end, tuple(blocks))


def alive(blocks: Sequence[Any], steps: int, step: int) -> list[Any]:
    """The blocks of a step."""
    middle = 1000 * (step + 0.5) / steps
    return [block for block in blocks if block.x < middle < block.x + block.width]


def top_of(blocks: Sequence[Any]) -> float:
    return max((-block.y for block in blocks), default=-1000.0)


def record(command: Sequence[str]) -> list[tuple[float, str]]:
    """Every line that a command prints on a terminal, and the seconds after which it did."""
    main, terminal = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(_COLUMNS), "LINES": str(_ROWS), "PYTHONPATH": str(TOP), "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=terminal, stderr=terminal, cwd=TOP, env=environment)
    os.close(terminal)
    lines, rest = [], b""
    while True:
        try:
            data = os.read(main, 4096)
        except OSError:  # how the end of a terminal shows on Linux
            break
        *whole, rest = (rest + data).split(b"\n")
        lines += [(time.monotonic() - start, line.decode().rstrip("\r")) for line in whole]
    if process.wait() != 0:
        raise SystemExit(f"{' '.join(command)} failed: {lines[-1:]}")
    return lines


def folded(lines: Sequence[tuple[float, str]]) -> Iterator[tuple[float, str]]:
    """Lines no longer than the terminal; what is printed plainly is broken, what is painted is short."""
    for at, line in lines:
        pieces = [line] if "\x1b" in line else [line[i : i + _COLUMNS] for i in range(0, len(line), _COLUMNS)]
        yield from ((at, piece) for piece in pieces or [""])


def recording(lines: Sequence[tuple[float, str]], title: str) -> str:
    """A terminal as SVG in which lines appear when they came, and which scrolls; it begins again at the end."""
    lines = list(folded(lines))
    shown: list[float] = []
    for number, (at, _) in enumerate(lines):
        wait = min(at - lines[number - 1][0], _LONGEST_WAIT) if number else 0.0
        shown.append((shown[-1] if shown else 0.3) + max(wait, 0.02))
    length = shown[-1] + _LAST_WAIT
    width, height = _COLUMNS * _CHARACTER + 24, _ROWS * _LINE + 44
    scroll = ["0%{transform:translateY(0)}"]
    for number in range(_ROWS, len(lines)):
        up = (number - _ROWS + 1) * _LINE
        scroll.append(f"{shown[number] / length:.3%}{{transform:translateY(-{up:.0f}px)}}")
    animated = f"animation:{length:.1f}s step-end infinite"
    end = max(len(lines) - _ROWS, 0) * _LINE  # what is shown where nothing moves
    style = [_STYLE, f".up{{transform:translateY(-{end:.0f}px)}}", "@media (prefers-reduced-motion:no-preference){"]
    style += [f"@keyframes up{{{''.join(scroll)}}}", f".up{{{animated} up}}"]
    body = []
    for number, (_, line) in enumerate(lines):
        moment = f"{shown[number] / length:.3%}"
        style.append(f"@keyframes l{number}{{0%{{opacity:0}}{moment}{{opacity:1}}}}.l{number}{{{animated} l{number}}}")
        body.append(f'<g class="l{number}" transform="translate(0 {(number + 1) * _LINE:.0f})">{painted(line)}</g>')
    style.append("}")
    frame = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {frame} aria-label="{escape(title)}"><style>',
            *style,
            f'</style><rect width="{width:.0f}" height="{height:.0f}" rx="8" fill="#1b2129"/>',
            f'<text x="12" y="20" class="s bold">{escape(title)}</text>',
            f'<svg x="12" y="30" width="{width - 24:.0f}" height="{_ROWS * _LINE + 6:.0f}"><g class="up s">',
            *body,
            "</g></svg></svg>",
            "",
        ]
    )


def painted(line: str) -> str:
    """The text of a line with the colours that its escape sequences ask for; cells with a background are rectangles."""
    parts, column, style, ground = [], 0, "command" if line.startswith("$ ") else "", ""
    for number, piece in enumerate(_ESCAPE.split(line)):
        if number % 2:
            style = {"1": "bold", "32": "green", "31": "red"}.get(piece, "")
            grey = int(piece.removeprefix("48;5;")) - 232 if piece.startswith("48;5;") else -1
            ground = f"rgb({grey * 10 + 8},{grey * 10 + 8},{grey * 10 + 8})" if grey >= 0 else ""
        elif piece:
            x = column * _CHARACTER
            if ground:
                wide = len(piece) * _CHARACTER + 0.3
                parts.append(f'<rect x="{x:.1f}" y="-13" width="{wide:.1f}" height="{_LINE + 0.3}" fill="{ground}"/>')
            elif piece.strip():
                kind = f' class="{style}"' if style else ""
                length = f'textLength="{len(piece) * _CHARACTER:.1f}" xml:space="preserve"'
                parts.append(f'<text x="{x:.1f}" {length}{kind}>{escape(piece)}</text>')
            column += len(piece)
    return "".join(parts)


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / "memory_map.svg").write_text(memory_map(), encoding="utf-8")
    demo: Any = record([sys.executable, "examples/digits/demo.py"])
    (IMAGES / "demo.svg").write_text(recording([(0.0, "$ make demo"), *demo], "make demo"), encoding="utf-8")


if __name__ == "__main__":
    main()
