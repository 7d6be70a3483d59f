"""A generated model takes the blob it was made with, and no other: not one with a single byte changed, anywhere."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from mccompile.driver import Options
from tests import small_models
from tests.small_models import PLAIN, compiled, written

OK, SIZE, ALIGN, MAGIC, VERSION, CRC, IDENTITY = 0, 6, 7, 8, 9, 11, 12


def offered(folder: Path, *flags: str, options: Options = PLAIN) -> dict[str, dict[int, int]]:
    """How often each status came back, by kind of change."""
    out = written(small_models.conv(), folder, options)
    other = small_models.conv()
    other.graph.node[0].attribute[0].ints[:] = [2, 2, 0, 0]  # other pads: the same weights, another network
    (folder / "other.mcb").write_bytes(compiled(other).files["conv.mcb"])
    sources = [
        Path(__file__).with_name("changed_blobs.c"),
        *(out / f"conv{part}.c" for part in ("", "_kernels", "_weights")),
    ]
    includes = [f"-I{out}", f"-I{out}/runtime"]
    command = ["gcc", "-std=c99", "-O1", "-fsanitize=undefined", *flags, *includes, *map(str, sources), "-lm"]
    subprocess.run([*command, "-o", str(folder / "program")], check=True, capture_output=True)
    done = subprocess.run([folder / "program", folder / "other.mcb"], check=True, capture_output=True, text=True)
    assert not done.stderr
    found: dict[str, dict[int, int]] = defaultdict(dict)
    for line in done.stdout.splitlines():
        kind, status, count = line.split()
        found[kind][int(status)] = int(count)
    return found


def test_only_the_whole_and_own_blob_is_taken(tmp_path: Path) -> None:
    found = offered(tmp_path)
    size = (tmp_path / "conv" / "conv.mcb").stat().st_size
    assert found["whole"] == {OK: 1}
    assert OK not in found["changed"] and sum(found["changed"].values()) == 3 * size
    assert found["changed"].keys() <= {SIZE, MAGIC, VERSION, CRC}
    assert found["truncated"] == {SIZE: size}
    assert found["oversized"] == {SIZE: 64}
    assert found["moved"] == {ALIGN: 1}
    assert found["other"] == {IDENTITY: 1}


@pytest.mark.parametrize("way", ["macro", "option"])
def test_without_checksums_everything_but_values_is_still_checked(way: str, tmp_path: Path) -> None:
    flags, options = (["-DMCC_NO_CRC"], Options()) if way == "macro" else ([], Options(trust_blob=True))
    found = offered(tmp_path, *flags, options=options)
    size = (tmp_path / "conv" / "conv.mcb").stat().st_size
    assert found["whole"] == {OK: 1}
    # Only changes of the data, of the table (which is not read), and of the checksums themselves go unnoticed.
    refused = 3 * size - found["changed"][OK]
    assert refused >= 3 * (4 + 4 + 8 + 16 + 8 + 8)
    assert {SIZE, MAGIC, VERSION, IDENTITY} <= found["changed"].keys() and CRC not in found["changed"]
    assert (found["truncated"], found["oversized"]) == ({SIZE: size}, {SIZE: 64})
    assert found["other"] == {IDENTITY: 1}
