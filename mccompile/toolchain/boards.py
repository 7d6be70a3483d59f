"""The boards that programs without an operating system are linked for: machines of QEMU, and where their memories lie.

Invariant: a board is data; its linker script is written from it and from nothing else. Weights get a memory of their
own where the machine has one that is larger, as external flash would be on a real board.
"""

from __future__ import annotations

from typing import NamedTuple

from ..base.records import dataclass

STACK_BYTES = 4 << 10
_MIB = 1 << 20


class Region(NamedTuple):
    origin: int
    bytes: int


class Uart(NamedTuple):
    """A serial line: its registers are those of this kind, at this address."""

    kind: str
    at: int


class Timer(NamedTuple):
    """A clock: its registers are those of this kind, at this address."""

    kind: str
    at: int
    mhz: int


_CMSDK = Uart("cmsdk", 0x40004000)
_NS16550 = Uart("ns16550", 0x10000000)
_NRF51 = Timer("nrf51", 0x40008000, 1)
_MPS2_TIMER = Timer("cmsdk", 0x40000000, 25)
_AN505_TIMER = Timer("cmsdk", 0x50000000, 20)
_SSE300 = Timer("sse", 0x58100000, 32)  # the system counter
_CLINT = Timer("clint", 0x200BFF8, 10)


@dataclass(frozen=True)
class Board:
    machine: str  # of QEMU
    vectors: Region  # where the core starts
    code: Region
    data: Region
    weights: Region
    larger: str = ""  # machine for what does not fit here
    options: tuple[str, ...] = ("--specs=nano.specs",)  # for linking: which C library
    uart: Uart = _CMSDK  # the first one
    timer: Timer = _MPS2_TIMER


_MPS2 = (Region(0, 0x400), Region(0x400, 4 * _MIB - 0x400), Region(0x20000000, 4 * _MIB))
_AN505 = (Region(0x10000000, 0x400), Region(0x10000400, 4 * _MIB - 0x400), Region(0x38000000, 4 * _MIB))
_AN547 = (Region(0x10000000, 0x400), Region(0x11000000, 2 * _MIB), Region(0x31000000, 4 * _MIB))
_VIRT = (Region(0x80000000, 0x400), Region(0x80000400, 8 * _MIB - 0x400), Region(0x80800000, 32 * _MIB))
# The small one has the only Cortex-M0 that QEMU knows.
_MICROBIT = (Region(0, 0xC0), Region(0xC0, (256 << 10) - 0xC0), Region(0x20000000, 16 << 10))

BOARDS = {
    board.machine: board
    for board in (
        Board("microbit", *_MICROBIT, _MICROBIT[1], "mps2-an385", uart=Uart("nrf51", 0x40002000), timer=_NRF51),
        Board("mps2-an385", *_MPS2, Region(0x21000000, 16 * _MIB)),
        Board("mps2-an386", *_MPS2, Region(0x21000000, 16 * _MIB)),
        Board("mps2-an500", *_MPS2, Region(0x60000000, 16 * _MIB)),
        Board("mps2-an505", *_AN505, Region(0x80000000, 16 * _MIB), uart=Uart("cmsdk", 0x50200000), timer=_AN505_TIMER),
        Board("mps3-an547", *_AN547, Region(0x60000000, 64 * _MIB), uart=Uart("cmsdk", 0x59303000), timer=_SSE300),
        Board("virt", *_VIRT, Region(0x83000000, 64 * _MIB), options=(), uart=_NS16550, timer=_CLINT),
    )
}


def linker_script(board: Board, weights_object: str) -> str:
    """A GNU ld script; what `weights_object` (a file's name) holds goes to the memory for weights."""
    shared = board.weights == board.code
    memories = {"VECTORS": board.vectors, "CODE": board.code, "DATA": board.data}
    if not shared:
        memories["WEIGHTS"] = board.weights
    lines = [f"    {name} : ORIGIN = {m.origin:#x}, LENGTH = {m.bytes:#x}" for name, m in memories.items()]
    return f"""ENTRY(bare_reset)
MEMORY {{
{chr(10).join(lines)}
}}
SECTIONS {{
    .vectors : {{ KEEP(*(.vectors)) }} > VECTORS
    .weights : {{ *{weights_object}(.rodata .rodata.* .srodata .srodata.*) }} > {"CODE" if shared else "WEIGHTS"}
    .text : {{ *(.text .text.*) }} > CODE
    .rodata : {{ *(.rodata .rodata.* .srodata .srodata.*) . = ALIGN(8); }} > CODE
    .ARM.extab : {{ *(.ARM.extab* .eh_frame*) }} > CODE
    .ARM.exidx : {{ *(.ARM.exidx*) . = ALIGN(8); }} > CODE
    .data : {{
        bare_data_start = .; __global_pointer$ = . + 0x800;
        *(.data .data.* .sdata .sdata.*) . = ALIGN(8); bare_data_end = .;
    }} > DATA AT > CODE
    bare_data_load = LOADADDR(.data);
    .bss (NOLOAD) : {{ . = ALIGN(8); bare_bss_start = .;
        *(.bss .bss.* .sbss .sbss.* .tbss .tbss.* COMMON) . = ALIGN(8); bare_bss_end = .; }} > DATA
    .stack (NOLOAD) : {{ . = ALIGN(16); bare_stack_limit = .; . += {STACK_BYTES}; bare_stack_top = .; }} > DATA
    end = .;
}}
"""
