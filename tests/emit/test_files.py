"""Large files are never in memory whole, and have the same bytes however they are asked for."""

from __future__ import annotations

import hashlib
import tracemalloc
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from mccompile.driver import compile_graph
from mccompile.emit import blob
from mccompile.emit.files import Files, on_disk
from mccompile.frontend.load import load_proto
from tests.small_models import PLAIN, compiled, floats, model, node


def test_what_is_rendered_reads_as_bytes() -> None:
    files = Files({"a": b"one", "b": lambda: (b"t", b"wo")}) | {"c": b"three"}
    assert dict(files) == {"a": b"one", "b": b"two", "c": b"three"}
    assert list(files.pieces("b")) == [b"t", b"wo"]
    assert files.digest("b") == hashlib.sha256(b"two").hexdigest()
    assert dict(files.moved({"b": "d/b"})) == {"d/b": b"two"}


def test_what_replaces_a_file_has_a_digest_of_its_own() -> None:
    files = Files({"a": b"one", "b": b"two"})
    before = files.digest("a")
    assert (files | {"a": b"other"}).digest("a") != before == (files | {"b": b"other"}).digest("a")


def test_nothing_is_rendered_before_it_is_asked_for() -> None:
    def never() -> list[bytes]:
        raise AssertionError

    files = Files.of(Files({"a": never})) | Files({"b": b"two"})
    assert files.only(["a", "b"])["b"] == b"two" and len(files) == 2


def test_a_file_on_disk_is_read_piece_by_piece(tmp_path: Path) -> None:
    contents = np.random.default_rng(0).bytes(3 << 20)
    (tmp_path / "a").write_bytes(contents)
    pieces = list(on_disk(tmp_path / "a")())
    assert len(pieces) == 3 and b"".join(pieces) == contents


def most_memory(count: int, folder: Path) -> int:
    """The most memory that compiling and writing takes for so many layers of 1 MB."""
    nodes = [node("MatMul", f"x{n} w{n}", f"x{n + 1}") for n in range(count)]
    weights = {f"w{n}": floats(n, 512, 512) for n in range(count)}
    graph = load_proto(model("layers", nodes, [("x0", (1, 512))], [(f"x{count}", (1, 512))], weights))
    del weights
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blob, "WORDS_AT_ONCE", blob.WORDS_PER_ROW << 10)
        tracemalloc.start()
        try:
            compile_graph(graph, PLAIN, "net").write(folder)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


def test_memory_grows_by_little_more_than_the_weights(tmp_path: Path) -> None:
    small = model("net", [node("MatMul", "x w", "y")], [("x", (1, 4))], [("y", (1, 4))], {"w": floats(0, 4, 4)})
    assert compiled(small).files  # templates and kernels are loaded once
    few, many = most_memory(1, tmp_path / "few"), most_memory(5, tmp_path / "many")
    assert many - few < 1.5 * 4 * (1 << 20)
    assert (tmp_path / "many" / "net_weights.c").stat().st_size > 5 << 20


def test_whether_a_file_is_there_is_asked_without_rendering_it() -> None:
    def rendered() -> Iterable[bytes]:
        raise AssertionError("rendered")

    files = Files({"model.mcb": rendered})
    assert "model.mcb" in files and "other" not in files
