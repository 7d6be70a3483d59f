"""Boards: the catalogue is whole, names as people write them lead to one board, and a board is a target with limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from mccompile.base.errors import CheckFailed, WrongUse
from mccompile.driver import Options
from mccompile.driver import compile as compile_model
from mccompile.driver.compiling import settled
from mccompile.targets import api
from mccompile.targets.boards import catalogue
from tests.small_models import conv, mlp, save

FAMILIES = (
    *("stm32f0", "stm32f1", "stm32f2", "stm32f3", "stm32f4", "stm32f7", "stm32g0", "stm32g4", "stm32h5", "stm32h7"),
    *("stm32l0", "stm32l1", "stm32l4", "stm32l5", "stm32u5", "stm32wb", "stm32wl", "nrf52840", "nrf5340", "nrf54l"),
    *("rp2040", "rp2350", "esp32", "esp32s3", "esp32c3", "esp32c6", "samd21", "samd51", "same5", "lpc55", "mimxrt10"),
    *("ra4m1", "ra6m5", "apollo3", "apollo4", "max78", "gd32f4", "ch32v003", "ch32v203", "ch32v307", "imxrt10"),
)


def test_the_catalogue_is_whole() -> None:
    found = catalogue.boards().values()
    assert len(found) >= 120
    assert {core.target for core in catalogue.cores().values()} <= set(api.names())
    for board in found:
        assert 1 << 10 <= board.ram < 64 << 20 and 8 << 10 <= board.flash <= 64 << 20, board.key
        assert 8 <= board.mhz <= 1000, board.key


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_has_boards(family: str) -> None:
    assert [board for board in catalogue.boards().values() if (catalogue.family(board.chip) or ("",))[0] == family]


def test_names_of_boards_mean_one_thing() -> None:
    for key in catalogue.boards():
        assert catalogue.find(key).memories == catalogue.boards()[key].memories, key


@pytest.mark.parametrize(
    ("name", "key", "target"),
    [
        ("nucleo-f446re", "nucleo_f446re", "cortex-m4"),
        ("NUCLEO F446RE", "nucleo_f446re", "cortex-m4"),
        ("STM32F446RET6", "nucleo_f446re", "cortex-m4"),
        ("stm32f446ret7tr", "nucleo_f446re", "cortex-m4"),
        ("stm32g474", "nucleo_g474re", "cortex-m4"),
        ("F446RE", "nucleo_f446re", "cortex-m4"),  # STM32 left out
        ("h743zi", "nucleo_h743zi", "cortex-m7"),
        ("L476RGT6", "nucleo_l476rg", "cortex-m4"),
        ("wb55", "nucleo_wb55rg_p", "cortex-m4"),
        ("STM32F4-Discovery", "disco_f407vg", "cortex-m4"),
        ("nRF52840", "nrf52840_dk", "cortex-m4"),
        ("Raspberry Pi Pico 2", "rpipico2", "cortex-m33"),
        ("esp32-c3", "esp32_c3_devkitm_1", "rv32imc"),
        ("ESP32-S3", "esp32_s3_devkitc_1", "generic"),
        ("nucleo_wl55jc", "nucleo_wl55jc", "cortex-m3"),  # its Cortex-M4 has no FPU
        ("ek-ra8m1", "ek_ra8m1", "cortex-m55"),
        ("teensy 4.1", "teensy41", "cortex-m7"),
        ("Arduino Uno", "uno", "generic"),  # AVR: examples/arduino runs there
    ],
)
def test_names_as_people_write_them(name: str, key: str, target: str) -> None:
    board = catalogue.find(name)
    assert (board.key, board.core.target) == (key, target)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("stm32f446", "--board nucleo_f446re"),  # 256K or 512K of flash
        ("stm32g4", "`mccompile boards stm32g4`"),
        ("h7", "`mccompile boards stm32h7`"),
        ("f746disco", "did you mean --board disco_f746ng?"),  # no chip's name goes on so
        ("nukleo_f446re", "did you mean --board nucleo_f446re"),
        ("arduino", "`mccompile boards arduino`"),
        ("zzz", "`mccompile boards stm32f4`"),
    ],
)
def test_what_is_not_one_board_says_what_it_could_be(name: str, told: str) -> None:
    with pytest.raises(WrongUse) as raised:
        catalogue.find(name)
    assert told in raised.value.problems[0].fix


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("stm32f4", "stm32f4 runs on Cortex-M4F: --target cortex-m4, or one of its boards, such as --board nucleo_f"),
        ("f446", "f446 runs on Cortex-M4F: --target cortex-m4, or --board nucleo_f446re"),
        ("l4", "l4 runs on Cortex-M4F: --target cortex-m4, or one of its boards, such as --board nucleo_l4"),
        ("nukleo_f446re", "did you mean --board nucleo_f446re or --target cortex-m4, its core?"),
        ("M33", "did you mean --target cortex-m33?"),  # not the boards whose core holds that word
        ("nodemcu", "did you mean --target generic?"),  # no program for WebAssembly
        ("rp2040", "--target cortex-m0, or --board pico (sets memories too)"),
        ("nrf52840", "--target cortex-m4, or --board nrf52840_dk"),
        ("nrf52", "`mccompile boards nrf52`"),
        ("arduino", "`mccompile boards arduino`"),
        ("cortex-m44", "did you mean --target cortex-m4?"),
        ("uno", "uno runs on AVR (8 bits): --target generic, or --board uno"),
        ("stm32wb09", "stm32wb09 runs on Cortex-M0+: --target cortex-m0"),  # other STM32WB have a Cortex-M4
        ("nrf52810", "nrf52810 runs on Cortex-M4 without FPU: --target cortex-m3"),
        ("EFR32MG24", "EFR32MG24 runs on Cortex-M33: --target cortex-m33"),
        ("gd32f103c8", "gd32f103c8 runs on Cortex-M3: --target cortex-m3"),
        ("nrf9160", "nrf9160 runs on Cortex-M33: --target cortex-m33"),  # a family without boards here
    ],
)
def test_a_board_given_as_a_target_leads_to_its_core(name: str, told: str) -> None:
    with pytest.raises(WrongUse) as raised:
        api.load(name)
    assert told in raised.value.problems[0].fix


TYPED = """
    esp32s3 nucleo-f446re stm32h7 nrf52840dk pico2 teensy41 samd51 ra4m1 apollo4 gd32vf103 ch32v307 portenta nicla
    xiao feather_m4 imxrt1062 esp32-c3 esp32 nrf5340dk nrf54l15 nrf9160dk microbit bluepill blackpill
    stm32f4discovery stm32f407 stm32f103c8t6 nucleo-h743zi b-l475e-iot01a stm32u585 stm32n6 arduino-nano-33-ble
    uno-r4 giga teensy4.0 teensy4 rp2040 pico-w lpc55s69 frdm-mcxn947 mimxrt1060-evk imxrt1170 k64f samd21
    atsame54p20a max78000fthr efr32mg24 xiao-esp32s3 xiao-nrf52840 esp32-cam esp-wrover esp8266 esp32p4 m5stack
    heltec lilygo wio-terminal apollo510 ambiq-apollo3 sparkfun-edge ek-ra8m1 rx65n psoc6 cy8cproto-062 nano-esp32
    adafruit-feather-m4-express itsybitsy-m4 longan-nano gd32f450 ch32v003 hifive1 k210 maixduino arduino-due
    arduino-mega mkr1000 stm32l4 stm32wb55 nucleo-wl55jc stm32h747i-disco openmv thingy53 xmc4500 msp432 tm4c123
    cc1352 am243 s32k144 alif ensemble-e7 grove-vision stm32f411re nucleo-l476rg b-l475e-iot01a gd32f303 apollo3
    max78000 ra6m5 stm32wba52 nucleo-wb09ke pca10056 nicla-voice frdm-mcxa153 same70 sam4e saml21 samc21 ra2e1 rz/a1
    efm32gg11 efr32xg24 bgm220 launchxl-cc1312r1 cc3220sf msp-exp432p401r xmc1100 cyt2b75 bl602 bl808 hpm6750
    at32f437 hc32f460 mm32f327 apm32f103 air32f103 ch32f103 w801 sifive-hifive1-revb vexriscv aducm3029 s32k344
    tc397 thingy:91 arduino-nano-every attiny85 wemos-d1 nodemcu rak4631 feather-rp2040 tiny2040 xiao-rp2350 esp-eye
    atom-s3 m5stickc esp8684 esp32-s3-box numaker-m467 v850 lp-am243 microblaze stm32h750b-dk steval-mkboxpro
"""


@pytest.mark.parametrize("name", TYPED.split())
def test_names_that_people_type_lead_somewhere(name: str) -> None:
    """To a board, or to one that is named, or to the target of their core."""
    try:
        catalogue.find(name)
    except WrongUse as refused:
        fix = refused.problems[0].fix
        assert "--board" in fix or "--target" in fix or f"`mccompile boards {name}`" in fix, fix


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("TMS320F28379D", "its bytes have 16 bits"),
        ("CC2530", "an 8051"),
        ("PIC18F47Q10", "a PIC of 8 bits"),
        ("XC7A35T", "an FPGA without a processor"),
        ("nRF7002-DK", "a radio beside a processor"),
    ],
)
def test_chips_for_which_nothing_is_written_say_why_and_what_instead(name: str, told: str) -> None:
    for asked in (catalogue.find, api.load):
        with pytest.raises(WrongUse) as raised:
            asked(name)
        problem = raised.value.problems[0]
        assert told in problem.why and ("--target" in problem.fix or "--board" in problem.fix)


@pytest.mark.parametrize(
    ("name", "core"),
    [
        ("CC2538", "Cortex-M3"),  # other CC253x are 8051s
        ("LP-MSPM0G3507", "Cortex-M0+"),  # a kit
        ("CY8C4247", "Cortex-M0"),  # no PSoC 6
        ("R5F565N", "RX"),  # no Cortex-R
        ("RA4W1", "Cortex-M4F"),  # most RA4 have a Cortex-M33
        ("AT32F415", "Cortex-M4 without FPU"),
        ("EFM32GG990", "Cortex-M3"),
        ("MAX32600", "Cortex-M3"),  # other MAX326xx have a Cortex-M4F
        ("K230", "RISC-V of 64 bits with vectors"),
        ("PIC32CX1025SG41", "Cortex-M4F"),
        ("HT32F52352", "Cortex-M0+"),
    ],
)
def test_a_family_without_boards_has_its_core(name: str, core: str) -> None:
    found = catalogue.core_of(name)
    assert found is not None and found.name == core


def test_no_family_stands_in_two_places() -> None:
    first, others = catalogue._read("families"), catalogue._read("other_families")
    starts = [*first, *(start for each in others.values() for start in each)]
    starts += [start for each in catalogue._read("no_families").values() for start in each["starts"]]
    assert sorted(starts) == sorted(set(starts))


def test_a_board_is_a_target_and_limits() -> None:
    options = Options(board="nucleo_f446re", budget={"ram": 1000})
    assert (options.target, options.budget) == ("cortex-m4", {"ram": 1000, "weights": 512 << 10})
    with pytest.raises(WrongUse, match="does not go with --target cortex-m7"):
        Options(board="nucleo_f446re", target="cortex-m7")


def test_weights_take_ram_where_pointers_do_not_reach_flash() -> None:
    assert Options(board="megaatmega2560").budget == {"ram": 8 << 10, "weights": 8 << 10}


def test_a_target_file_may_say_more_of_the_core(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('inherits = "cortex-m4"\n')
    assert Options(board="nucleo_f446re", target=str(mine)).target == str(mine)


def test_a_model_that_does_not_fit_says_where_it_would(tmp_path: Path) -> None:
    model = save(conv(), tmp_path)
    options = Options(board="stm32f030f4", budget={"ram": 100})
    with pytest.raises(CheckFailed) as raised:
        compile_model(model, options)
    problem = raised.value.problems[0]
    assert "over the budget" in problem.what and "--budget" not in problem.fix.partition("(or")[0]
    assert "--board" in problem.fix


def test_what_fits_is_settled_without_the_board(tmp_path: Path) -> None:
    model = save(mlp(), tmp_path)
    chosen = settled(model, Options(board="nucleo_f446re"))
    assert (chosen.board, dict(chosen.budget), chosen.target) == ("", {}, "cortex-m4")
