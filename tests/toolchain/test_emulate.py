"""What can be said without a cross-compiler: what is missing is named, boards and maps are read right."""

from __future__ import annotations

from pathlib import Path

import pytest

from mccompile.base.errors import WrongUse
from mccompile.driver import Options
from mccompile.emit.blob import Carrier
from mccompile.targets import api
from mccompile.toolchain import emulate
from mccompile.toolchain.boards import BOARDS, linker_script
from mccompile.toolchain.emulate import _sources
from mccompile.toolchain.image import read_map
from mccompile.toolchain.tools import require
from tests import small_models
from tests.small_models import compiled


def test_what_is_missing_is_named_with_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(WrongUse) as caught:
        require(["arm-none-eabi-gcc", "qemu-system-arm"], "cortex-m4")
    assert "arm-none-eabi-gcc, qemu-system-arm not found" in str(caught.value)
    assert "gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm" in str(caught.value)


@pytest.mark.parametrize(
    ("there", "fix"),
    [
        ({"riscv64-linux-gnu-gcc", "qemu-riscv64"}, "leave out --cc: riscv64 is built with riscv64-linux-gnu-gcc"),
        ({"riscv64-linux-gnu-gcc"}, "riscv64-linux-gnu-gcc; Debian: apt-get install --no-install-recommends qemu-user"),
        ({"qemu-riscv64"}, "riscv64-linux-gnu-gcc; Debian: apt-get install --no-install-recommends gcc-riscv64-linux"),
    ],
)
def test_a_compiler_that_nobody_knows_is_left_out(there: set[str], fix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this machine has: the fix is whole, so that pasting it works."""
    monkeypatch.setattr("shutil.which", lambda name: name if name in there else None)
    with pytest.raises(WrongUse, match=r"riscv-gc.* not found") as caught:
        require(["riscv-gc", "qemu-riscv64"], "riscv64", "riscv64-linux-gnu-gcc")
    assert fix in str(caught.value)


def test_every_bare_metal_target_has_a_board() -> None:
    machines = {words[words.index("-M") + 1] for name in api.names() if "-M" in (words := api.load(name).run.split())}
    assert machines and machines <= BOARDS.keys()


def test_memories_of_a_board_do_not_overlap() -> None:
    for board in BOARDS.values():
        regions = sorted({board.vectors, board.code, board.data, board.weights}, key=lambda region: region.origin)
        ends = [region.origin + region.bytes for region in regions]
        assert all(end <= region.origin for end, region in zip(ends, regions[1:], strict=False)), board.machine


def test_weights_share_the_flash_where_there_is_no_other() -> None:
    assert "> WEIGHTS" not in linker_script(BOARDS["microbit"], "kws_weights.o")
    assert "*kws_weights.o(.rodata" in linker_script(BOARDS["mps2-an386"], "kws_weights.o")


def test_a_map_is_summed_by_source_and_section(tmp_path: Path) -> None:
    path = tmp_path / "program.map"
    path.write_text(
        "Discarded input sections\n .text.gone    0x0        0x100 /s/kws_kernels.o\n"
        "Linker script and memory map\n"
        " .text.kws_conv\n                0x00000400       0x20 /s/kws_kernels.o\n"
        " .text.kws_run  0x00000420       0x10 /s/kws.o\n"
        " .rodata.x      0x00000430        0x8 /s/kws_kernels.o\n"
        " .text.memcpy   0x00000440        0x6 /usr/lib/libc.a(libc_memcpy.o)\n"
        " .bss.memory    0x20000000       0x40 /s/run_model.o\n"
    )
    assert read_map(path, "kws") == {
        "kernels": {"text": 0x20, "rodata": 8},
        "model": {"text": 0x10},
        "libraries": {"text": 6},
        "program": {"bss": 0x40},
    }


LLD_MAP = """\
             VMA              LMA     Size Align Out     In      Symbol
           103b8            103b8      140     8 .rodata
           103b8            103b8      140     8         /lib/libm.a(s_sincosf_data.o):(.rodata)
           103b8            103b8       60     1                 __inv_pio4
           3028e            3028e       44     2         /s/kws_kernels.o:(.text.kws_conv)
           2ef18            2ef18       30     1         /s/kws.o:(.eh_frame+0x0)
           779f8            779f8       28     4         /s/run_model.o:(.bss.z)
"""
LLD_MAP_OF_WASM = """\
    Addr      Off     Size Out     In      Symbol
       -       ff     3b92 CODE
       -      11c       53         /s/kws_kernels.o:(kws_conv)
       -      11c       53                 kws_conv
       -      16f        9         /lib/libc.a(memcpy.o):(memcpy)
     400     3c99       10         /s/kws_weights.o:(.rodata.kws_weights)
     f30        0       28         /s/run_model.o:(.bss.z)
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (LLD_MAP, {"libraries": {"rodata": 0x140}, "kernels": {"text": 0x44}, "program": {"bss": 0x28}}),
        (
            LLD_MAP_OF_WASM,
            {
                "kernels": {"text": 0x53},
                "libraries": {"text": 9},
                "weights": {"rodata": 0x10},
                "program": {"bss": 0x28},
            },
        ),
    ],
)
def test_maps_of_lld_are_read_too(text: str, found: dict[str, dict[str, int]], tmp_path: Path) -> None:
    path = tmp_path / "program.map"
    path.write_text(text)
    assert read_map(path, "kws") == found


@pytest.mark.parametrize(("carrier", "align"), [("array", 16), ("external", 64)])
def test_the_assembler_brings_in_what_would_be_a_large_array(
    carrier: str, align: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """60 MB of weights are an array of 260 MB of C, which cross-compilers take many minutes for."""
    (tmp_path / "scratch").mkdir()
    compiled(small_models.conv(), Options(blob=Carrier(carrier))).write(tmp_path / "out")
    if carrier == "array":
        assert tmp_path / "out" / "conv_weights.c" in _sources(tmp_path / "out", "conv", tmp_path / "scratch")
        monkeypatch.setattr(emulate, "_LARGE", 100)
    sources = _sources(tmp_path / "out", "conv", tmp_path / "scratch")
    assert [path.name for path in sources] == ["conv.c", "conv_kernels.c", "conv_weights.c"]
    text = (tmp_path / "scratch" / "conv_weights.c").read_text()
    assert sources[-1].parent == tmp_path / "scratch" and ".incbin" in text
    assert f".balign {align}\\n" in text  # no better than promised


def test_a_single_file_has_its_weights(tmp_path: Path) -> None:
    compiled(small_models.conv(), Options(single_file=True)).write(tmp_path)
    assert [path.name for path in _sources(tmp_path, "conv", tmp_path)] == ["conv.c"]
