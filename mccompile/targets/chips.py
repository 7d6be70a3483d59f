"""Chips, boards and cores by the names that people know: which target is theirs.

Invariant: the first line that a name begins with says it; where no target has kernels for a core, that is `generic`,
and what is said of it tells so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_M0, _M3, _M4, _M7, _M33, _M55 = "cortex-m0", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55"
_PORTABLE = "portable C runs there; no kernels are written for"

# (names begin with, target, what is there); separators are left out of names
_TABLE = (
    (r"stm32(f0|l0|g0|c0|u0|wl0)", _M0, "an Arm Cortex-M0 or M0+"),
    (r"stm32(f1|f2|l1)|bluepill|nucleof103|lpc17|sam3", _M3, "an Arm Cortex-M3"),
    (r"stm32(f3|f4|l4|g4|wb|wl)|blackpill|nucleo(f3|f4|l4|g4|wb)|discof4|stm32f4disco", _M4, "an Arm Cortex-M4"),
    (r"stm32(f7|h7)|nucleo(f7|h7)|openmv|portenta|arduinogiga|giga", _M7, "an Arm Cortex-M7"),
    (r"stm32(l5|u5|h5|wba|u3)|nucleo(l5|u5|h5)", _M33, "an Arm Cortex-M33"),
    (r"stm32(n6)|nucleon6", _M55, "an Arm Cortex-M55"),
    (r"stm32mp1", "armv7a", "an Arm Cortex-A7"),
    (r"stm32mp2", "aarch64", "an Arm Cortex-A35"),
    (r"stm32|nucleo|discovery", _M4, "Cortex-M4 in most of these; M0 to M55 in others, see its data sheet"),
    (r"nrf51|microbitv1|rp2040|pico1?w?$|raspberrypipico1?w?$|samd21|lpc8|mkl|arduinozero|xiao$", _M0, "a Cortex-M0+"),
    (r"nrf52|microbit|samd51|same5|arduinonano33|nano33|arduinonicla|max7800|apollo[23]", _M4, "an Arm Cortex-M4"),
    (r"lpc43|k64f|mk64|frdmk", _M4, "an Arm Cortex-M4"),
    (r"apollo4|efr32mg12|tm4c|msp432|cc26|cc13|psoc6", _M4, "an Arm Cortex-M4"),
    (r"imxrt|mimxrt|teensy|sams7|same7|samv7", _M7, "an Arm Cortex-M7"),
    (
        r"nrf53|nrf54|nrf91|lpc55|rp2350|pico2|raspberrypipico2|efr32|ra4|ra6|mcxn|mcxa|saml1|arduinounor4|arduinonanor4",
        _M33,
        "an Arm Cortex-M33 (the RA4M1 of an Arduino UNO R4 is a Cortex-M4)",
    ),
    (
        r"alif|ensemble|corstone300|mps3|apollo5|ethosu|armethos|ra8|corstone310",
        _M55,
        "a Cortex-M55 or M85 beside its accelerator, which is not used",
    ),
    (r"esp32(c|h|p)", "rv32imc", "a RISC-V core"),
    (r"esp32|esp8266|xtensa|lx[67]", "generic", f"{_PORTABLE} Xtensa; --package esp-idf arranges it"),
    (r"gd32v|ch32v|longan|hifive1|fe310|bl60|bl70|ibex|rv32|riscv32", "rv32imc", "a RISC-V core of 32 bits"),
    (r"k230|k1$|spacemit|bananapif3|rva23|rv64gcv|riscvv|rvv", "riscv64v", "a RISC-V core of 64 bits with vectors"),
    (r"k210|visionfive|milkv|duo|jh71|unmatched|rv64|riscv64|riscv|risc", "riscv64", "a RISC-V core of 64 bits"),
    (r"(raspberrypi|raspi|rpi|raspberry)(zero2|3|4|5|400|cm4|$)", "aarch64", "Arm cores of 64 bits"),
    (r"(raspberrypi|raspi|rpi|raspberry)", "armv7a", "Arm cores; of 32 bits in older ones"),
    (
        r"jetson|orin|xavier|nano$|rk35|rk33|imx8|imx9|beagleplay|snapdragon|android|pixel|graviton|armv8|arm64|neon64",
        "aarch64",
        "Arm cores of 64 bits",
    ),
    (r"apple|m[12]$|m[1-9]pro|macos|osx|darwin|mac$|iphone|ios", "aarch64", "Arm cores of 64 bits"),
    (r"(cortex)?a(35|53|55|57|65|7[0-9]|510|520|715|720)|cortexx", "aarch64", "an Arm core of 64 bits"),
    (r"(cortex)?a(5|7|8|9|12|15|17)$|armv7|armhf|arm32|neon|beaglebone|zynq|imx6|imx7", "armv7a", "Arm of 32 bits"),
    (r"(cortex)?r\d", "generic", f"{_PORTABLE} Cortex-R"),
    (r"(arm)?(cortex|c)?m0(plus|\+)?$|(arm)?(cortex|c)m1$", _M0, "an Armv6-M core"),
    (r"(arm)?(cortex|c)?m23", "cortex-m23", "an Armv8-M core"),
    (r"(arm)?(cortex|c)?m3$|armv7m", _M3, "an Armv7-M core"),
    (r"(arm)?(cortex|c)?m4f?$|armv7em", _M4, "an Armv7E-M core"),
    (r"(arm)?(cortex|c)?m7f?$", _M7, "an Armv7E-M core"),
    (r"(arm)?(cortex|c)?m3[35](p|f)?$|armv8m", _M33, "an Armv8-M core"),
    (r"(arm)?(cortex|c)?m(52|55|85)$|armv81m|helium|mve", _M55, "an Armv8.1-M core with Helium"),
    (r"(cortexm?|arm)$", _M4, "one of the Cortex-M: --target names the core"),
    (r"avx512|skylakex|x8664v4|zen[45]|icelake|sapphire", "x86-64-v4", "x86-64 with AVX-512"),
    (
        r"avx|avx2|haswell|x8664v3|zen|amd64|x8664|x64|x86$|skylake|intel|amd|pc$|core2?i",
        "x86-64-v3",
        "x86-64 with AVX2; --target native is this machine",
    ),
    (r"wasm|web|browser|node|emscripten|wasi", "wasm32", "WebAssembly with SIMD"),
    (r"host|local|this|native|cpu|desktop|laptop|machine|linux|windows|x86", "native", "this machine"),
    (
        r"any|all|c99|c$|portable|default|avr|atmega|attiny|arduinouno|arduinomega|uno$|msp430|pic\d|mips|powerpc|ppc|tricore",
        "generic",
        "portable C is what runs there",
    ),
    (r"arduino", _M4, "a Cortex-M4 in most; an UNO and a Mega (AVR) take --target generic"),
    (
        r"gpu|cuda|tensorrt|opencl|vulkan|metal|npu|tpu|edgetpu|hailo|fpga|dsp|hexagon",
        "native",
        "accelerators are not used: C runs on processors",
    ),
)


@dataclass(frozen=True)
class Chip:
    target: str
    what: str  # what is there, in words


def chip(name: str) -> Chip | None:
    """The target of a chip, a board or a core."""
    plain = re.sub(r"[\s_.\-/]", "", name.lower())
    return next((Chip(target, what) for begins, target, what in _TABLE if re.match(begins, plain)), None)
