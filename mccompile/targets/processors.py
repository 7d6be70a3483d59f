"""Cores, computers and accelerators by the names that people know: which target is theirs. Microcontrollers and their
boards are in the catalogue (`boards/`), which is asked first.

Invariant: the first line that a name begins with says it; where no target has kernels for a core, that is `generic`,
and what is said of it tells so.
"""

from __future__ import annotations

import re

from ..base.records import dataclass

_M0, _M3, _M4, _M7, _M33, _M55 = (f"cortex-m{n}" for n in (0, 3, 4, 7, 33, 55))
_PORTABLE = "portable C runs there; no kernels are written for"

# (names begin with, target, what is there); separators are left out of names
_TABLE = (
    (r"(arm|thumb)v6m", _M0, "an Armv6-M core"),
    (r"(arm|thumb)v7em", _M4, "an Armv7E-M core"),
    (r"(arm|thumb)v7m", _M3, "an Armv7-M core"),
    (r"(arm|thumb)v81m", _M55, "an Armv8.1-M core with Helium"),
    (r"(arm|thumb)v8mbase", "cortex-m23", "an Armv8-M core"),
    (r"(arm|thumb)v8m", _M33, "an Armv8-M core"),
    (r"armnoneeabi", _M4, "one of the Cortex-M: --target names the core"),
    (r"arm(linux|unknown|eabi)", "armv7a", "Arm of 32 bits"),
    (r"stm32mp1", "armv7a", "an Arm Cortex-A7"),
    (r"stm32mp2", "aarch64", "an Arm Cortex-A35"),
    (r"(raspberrypi|raspi|rpi|raspberry)(zero2|3|4|5|400|cm4|$)", "aarch64", "Arm cores of 64 bits"),
    (r"(raspberrypi|raspi|rpi|raspberry)", "armv7a", "Arm cores; of 32 bits in older ones"),
    (
        r"jetson|orin|xavier|nano$|rk35|rk33|imx8|imx9|beagleplay|snapdragon|android|pixel|graviton|armv8|arm64|aarch64|neon64",
        "aarch64",
        "Arm cores of 64 bits",
    ),
    (r"apple|m[12]$|m[1-9]pro|macos|osx|darwin|mac$|iphone|ios", "aarch64", "Arm cores of 64 bits"),
    (r"(cortex)?a(35|53|55|57|65|7[0-9]|510|520|715|720)|cortexx", "aarch64", "an Arm core of 64 bits"),
    (r"(cortex)?a(5|7|8|9|12|15|17)$|armv7|armhf|arm32|neon|beaglebone|zynq|imx6|imx7", "armv7a", "Arm of 32 bits"),
    (r"(cortex)?r\d", "generic", f"{_PORTABLE} Cortex-R"),
    (r"(arm)?(cortex|c)?m0(plus|\+)?$|(arm)?(cortex|c)m1$", _M0, "an Armv6-M core"),
    (r"(arm)?(cortex|c)?m23", "cortex-m23", "an Armv8-M core"),
    (r"(arm)?(cortex|c)?m3$", _M3, "an Armv7-M core"),
    (r"(arm)?(cortex|c)?m4f?$", _M4, "an Armv7E-M core"),
    (r"(arm)?(cortex|c)?m7f?$", _M7, "an Armv7E-M core"),
    (r"(arm)?(cortex|c)?m3[35](p|f)?$", _M33, "an Armv8-M core"),
    (r"(arm)?(cortex|c)?m(52|55|85)$|helium|mve", _M55, "an Armv8.1-M core with Helium"),
    (r"xtensa|lx[67]", "generic", f"{_PORTABLE} Xtensa; --package esp-idf arranges it"),
    (r"espeye|m5stick|nodemcu32", "generic", "an ESP32 (--board esp32dev)"),
    (r"atoms3|lolins3", "generic", "an ESP32-S3 (--board esp32_s3_devkitc_1)"),
    (r"nodemcu|wemos|lolind1", "generic", "an ESP8266 (--board esp8266)"),
    (r"heltec|lilygo|ttgo", "generic", "most have an ESP32 or ESP32-S3, such as --board esp32_s3_devkitc_1"),
    (r"(sifive)?hifive1", "rv32imc", "an FE310, RISC-V of 32 bits"),
    (r"vexriscv|litex|neorv32|picorv32", "rv32imc", "a RISC-V core of 32 bits, if it has M and C"),
    (r"bl808|k210|kendryte|maix|milkv|visionfive", "riscv64", "a RISC-V core of 64 bits"),
    (r"openmv", _M7, "most have an STM32H743 (--board nucleo_h743zi)"),
    (r"thingy53", _M33, "an nRF5340 (--board nrf5340dk)"),
    (r"thingy91", _M33, "an nRF9160 or nRF9161"),
    (r"niclavoice", _M4, "an nRF52832 (--board nrf52_dk)"),
    (r"rak4631", _M4, "an nRF52840 (--board nrf52840_dk)"),
    (r".*rp2040|.*tiny2040", _M0, "an RP2040 (--board pico)"),
    (r".*rp2350|.*tiny2350", _M33, "an RP2350 (--board rpipico2)"),
    (r"frdmmcx[an]", _M33, "a Cortex-M33"),
    (r"nucleowb0", _M0, "a Cortex-M0+"),
    (r"(launchxl|lp)cc(13|26)|mspexp432p4|ektm4c", _M4, "a Cortex-M4F"),
    (r"nuvotonm4|numakerm4|m48\d|m46\d", _M4, "a Cortex-M4F"),
    (r"rza[12]", "armv7a", "an Arm Cortex-A9"),
    (r"sparkfunedge", _M4, "an Apollo3 Blue (--board apollo3_evb)"),
    (r"cy8c|psoc", _M4, "the Cortex-M4 of a PSoC 6"),
    (r"(lp)?am2|am6|tms570|rzt|rx\d|rl78|v850|rh850", "generic", f"{_PORTABLE} Cortex-R, RX, RL78 and RH850"),
    (r"microblaze|nios|w80[016]|csky", "generic", f"{_PORTABLE} MicroBlaze, Nios II and C-SKY"),
    (r"(arduino)?nanoevery|atmega4809", "generic", "an AVR: plain C for its own compiler"),
    (r"grovevision|himax|we2|wiseeye|ensemble|balletto", _M55, "a Cortex-M55; its accelerator is not used"),
    (r"corstone300|corstone310|mps3|ethosu|armethos|alif", _M55, "a Cortex-M55 or M85; its accelerator is not used"),
    (r"riscvv|rvv|rva23|rv64gcv", "riscv64v", "a RISC-V core of 64 bits with vectors"),
    (r"rv64|riscv64|riscv|risc", "riscv64", "a RISC-V core of 64 bits"),
    (r"rv32|riscv32|ibex", "rv32imc", "a RISC-V core of 32 bits"),
    (r"(cortexm?|arm|thumb)$", _M4, "an Arm core, such as a Cortex-M; under Linux it is armv7a or aarch64"),
    (r"avx512|skylakex|x8664v4|zen[45]|icelake|sapphire", "x86-64-v4", "x86-64 with AVX-512"),
    (
        r"avx|avx2|haswell|x8664v3|zen|amd64|x8664|x64|x86$|skylake|intel|amd|pc$|core2?i",
        "x86-64-v3",
        "x86-64 with AVX2; --target native is this machine",
    ),
    (r"wasm|web|browser|node(js)?$|emscripten|wasi", "wasm32", "WebAssembly with SIMD"),
    (r"host|local|this|native|cpu|desktop|laptop|machine|linux|windows|x86", "native", "this machine"),
    (
        r"any|all|c99|c$|portable|default|avr|mips|powerpc|ppc|tricore|tc[23]\d\d",
        "generic",
        "portable C is what runs there",
    ),
    (
        r"gpu|cuda|tensorrt|opencl|vulkan|metal|npu|tpu|edgetpu|hailo|fpga|dsp|hexagon",
        "native",
        "accelerators are not used: C runs on processors",
    ),
)


@dataclass(frozen=True)
class Processor:
    target: str
    what: str  # what is there, in words


def named_processor(name: str) -> Processor | None:
    """The target of a core, a computer or an accelerator."""
    plain = re.sub(r"[\s_.\-/]", "", name.lower())
    return next((Processor(target, what) for begins, target, what in _TABLE if re.match(begins, plain)), None)
