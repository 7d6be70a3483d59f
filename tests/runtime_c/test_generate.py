"""mcc_generate.h ends texts in front of the stop string that is whole first, whatever pieces they come in."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np

from mccompile.base.discovery import data_folder

_CODE = """
#include "mcc_generate.h"
int ended(const char *const *stops, size_t count, const char *const *pieces, size_t piece_count, mcc_told told)
{
    mcc_held held = {NULL, 0u};
    size_t i;
    int found = MCC_END_MOST;
    for (i = 0u; i < piece_count && found == MCC_END_MOST; i++) {
        found = mcc_held_take(&held, stops, count, pieces[i], strlen(pieces[i]), told, NULL);
    }
    if (held.size > 0u) (void)told(held.text, held.size, NULL);
    return found;
}
"""
_STOP, _MOST, _CALLER = 0, 1, 3


def cut(text: str, stops: list[str]) -> tuple[str, int]:
    for end in range(len(text) + 1):
        whole = [stop for stop in stops if stop and text[:end].endswith(stop)]
        if whole:
            return text[:end].removesuffix(max(whole, key=len)), _STOP
    return text, _MOST


def test_stop_strings_are_found_across_pieces(tmp_path: Path) -> None:
    (tmp_path / "held.c").write_text(_CODE)
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", "-shared", "-fPIC"]
    include = data_folder("runtime_c") / "include"
    subprocess.run(["gcc", *flags, f"-I{include}", "held.c", "-o", "held.so"], cwd=tmp_path, check=True)
    code, told = ctypes.CDLL(str(tmp_path / "held.so")), list[str]()
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)

    def take(text: int, size: int, _: int) -> int:
        told.append(ctypes.string_at(text, size).decode())  # always whole characters
        return int(told[-1] == "x")

    def ended(stops: list[str], pieces: list[str]) -> tuple[str, int]:
        told.clear()
        given = [(ctypes.c_char_p * max(1, len(each)))(*(s.encode() for s in each)) for each in (stops, pieces)]
        sizes = [ctypes.c_size_t(len(each)) for each in (stops, pieces)]
        found = code.ended(given[0], sizes[0], given[1], sizes[1], kind(take))
        return "".join(told), found

    chance = np.random.default_rng(1)
    letters = np.array(list("aaabbé\u00e8\u20ac"))
    for _ in range(4000):
        stops = ["".join(chance.choice(letters, chance.integers(0, 5))) for _ in range(chance.integers(0, 4))]
        pieces = ["".join(chance.choice(letters, chance.integers(0, 4))) for _ in range(chance.integers(0, 8))]
        assert ended(stops, pieces) == cut("".join(pieces), stops), (stops, pieces)
    assert ended(["ab"], ["x", "ab"]) == ("x", _CALLER)
    assert ended(["xab"], ["x", "ac"]) == ("x", _CALLER)
