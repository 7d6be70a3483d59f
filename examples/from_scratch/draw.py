"""Draws two curves of losses into one picture: `python draw.py C.txt PYTORCH.txt PICTURE.svg`."""

import math
import sys
from pathlib import Path

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 720, 320, 60, 20, 40
LOWEST, HIGHEST = -4, 1  # powers of ten
STEPS_OF_EPOCH = 15


def points(losses: list[float]) -> str:
    """The mean of each epoch, on a scale of logarithms."""
    epochs = [losses[first : first + STEPS_OF_EPOCH] for first in range(0, len(losses), STEPS_OF_EPOCH)]
    means = [sum(epoch) / len(epoch) for epoch in epochs]
    across = (WIDTH - LEFT - 20) / max(1, len(means) - 1)
    return " ".join(f"{LEFT + n * across:.1f},{height(mean):.1f}" for n, mean in enumerate(means))


def height(loss: float) -> float:
    part = (math.log10(max(loss, 10.0**LOWEST)) - LOWEST) / (HIGHEST - LOWEST)
    return TOP + (1 - part) * (HEIGHT - TOP - BOTTOM)


def main() -> None:
    ours, theirs = ([float(line) for line in Path(name).read_text(encoding="utf-8").split()] for name in sys.argv[1:3])
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"',
        ' font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for power in range(LOWEST, HIGHEST + 1):
        y = height(10.0**power)
        lines.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - 20}" stroke="#ddd"/>')
        lines.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    lines += [
        f'<polyline points="{points(theirs)}" fill="none" stroke="#f0a030" stroke-width="7"/>',
        f'<polyline points="{points(ours)}" fill="none" stroke="#1f5fa8" stroke-width="2"/>',
        f'<text x="{LEFT}" y="{HEIGHT - 12}">loss over {len(ours) // STEPS_OF_EPOCH} epochs</text>',
        f'<text x="{WIDTH - 20}" y="{TOP + 14}" text-anchor="end" fill="#b06f10">PyTorch</text>',
        f'<text x="{WIDTH - 20}" y="{TOP + 30}" text-anchor="end" fill="#1f5fa8">C, by mccompile train</text>',
        "</svg>",
    ]
    Path(sys.argv[3]).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
