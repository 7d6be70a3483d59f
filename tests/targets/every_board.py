"""Compiles a model for every board of the catalogue: it fits, or what is said tells by how much it does not.

python -m tests.targets.every_board [MODEL]      examples/bare_metal/kws.onnx, where none is named
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mccompile.base.errors import CheckFailed
from mccompile.driver import Options, compile
from mccompile.targets.boards.catalogue import Board, boards, shown

KWS = Path(__file__).resolve().parents[2] / "examples" / "bare_metal" / "kws.onnx"


def outcome(model: Path, board: Board) -> str:
    """What it takes of a board, or why it does not fit."""
    try:
        package = compile(model, Options(board=board.key))
    except CheckFailed as refused:
        problem = refused.problems[0]
        assert "over the budget" in problem.what and problem.fix, problem.render()
        return f"does not fit: {problem.what}; {problem.fix}"
    taken = {"ram": package.plan.arena_bytes, "weights": package.weights_bytes}
    assert all(taken[what] <= most for what, most in board.budget.items()), (board.key, taken)
    return f"fits: {taken['ram']} bytes of RAM, {taken['weights']} of weights"


def outcomes(model: Path) -> Iterator[tuple[Board, str]]:
    """Of each board; those with the same core and memories are compiled for once."""
    known: dict[object, str] = {}
    for board in boards().values():
        if board.memories not in known:
            known[board.memories] = outcome(model, board)
        yield board, known[board.memories]


def main() -> None:
    model = Path(sys.argv[1]) if len(sys.argv) > 1 else KWS
    counted: Counter[str] = Counter()
    for board, said in outcomes(model):
        counted[said.partition(":")[0]] += 1
        print(f"{board.key} ({board.core.name}, {shown(board.ram)}, {shown(board.flash)}): {said}", flush=True)
    print(", ".join(f"{count} boards: {what}" for what, count in counted.items()))


if __name__ == "__main__":
    main()
