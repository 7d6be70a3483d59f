"""Copies of fuzzed programs are there when they are waited for, and one at a time is on its way."""

from __future__ import annotations

import subprocess
from pathlib import Path

from . import programs

MAIN = """
#include "late.h"

int main(void)
{
    const unsigned char from[2] = {1, 2};
    unsigned char to[2] = {7, 7}, other[2];
    if (MCC_COPY_WAIT() == 0) return 1;
    if (MCC_COPY_BEGIN(to, from, sizeof to) != 0 || to[0] != 0xA5 || to[1] != 0xA5) return 2;
    if (MCC_COPY_BEGIN(other, from, sizeof other) == 0) return 3;
    if (MCC_COPY_WAIT() != 0 || to[0] != 1 || to[1] != 2) return 4;
    return MCC_COPY_WAIT() == 0 ? 5 : 0;
}
"""
HEADER = """#include "kws.h"
#define MCC_HOST_PREFIX kws
#define MCC_HOST_INIT(m, a, n, w, s) kws_init(m, (a)[0], (n)[0], w, s)
"""


def test_one_copy_at_a_time_is_there_when_it_is_waited_for(tmp_path: Path) -> None:
    source = tmp_path / "main.c"
    source.write_text(MAIN, encoding="utf-8")
    words = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{programs.HERE}"]
    subprocess.run([*words, str(source), "-o", str(tmp_path / "main")], check=True)
    assert subprocess.run([str(tmp_path / "main")], check=False).returncode == 0


def test_the_blob_may_come_by_a_reader() -> None:
    text = programs.from_reader(HEADER, "kws")
    assert text.index('"kws.h"') < text.index('"late_blob.h"') < text.index("#define")
    assert text.endswith("kws_init_from(m, (a)[0], (n)[0], late_blob_reader(w, s))\n")
