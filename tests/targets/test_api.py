"""Targets: every one that comes along loads, inheritance is resolved, and a wrong file says what is wrong with it."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from mccompile.base.errors import BadFile, MccError, WrongUse
from mccompile.targets import api


def write(folder: Path, text: str, name: str = "mine") -> str:
    path = folder / f"{name}.toml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("name", api.names())
def test_every_target_is_complete(name: str) -> None:
    target = api.load(name)
    assert target.name == name
    assert target.isas[-1] == "c"
    assert ("vec" in target.isas) <= (target.vector_bytes > 0)
    assert target.vector_bytes <= target.align or target.align == 16
    assert hash(target) == hash(api.load(name))


@pytest.mark.parametrize("name", [name for name in api.names() if name.startswith("cortex-m")])
def test_a_cortex_m_is_built_for_itself(name: str) -> None:
    target = api.load(name)
    assert f"-mcpu={name}" in target.cflags
    assert (target.pointer_bytes, target.compiler, target.prefer) == (4, "arm-none-eabi-gcc", "balanced")


def test_generic_saves_memory_and_promises_nothing() -> None:
    target = api.load("generic")
    assert (target.isas, target.vector_bytes, target.prefer, target.run) == (("c",), 0, "ram", "")


def test_files_of_users_are_read_anew_and_those_of_mccompile_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = write(tmp_path, 'inherits = "cortex-m4"\nvector_bytes = 8\n')
    assert api.load(own).vector_bytes == 8
    write(tmp_path, 'inherits = "cortex-m4"\nvector_bytes = 16\n')
    read = []
    monkeypatch.setattr(api, "_read_now", lambda path, original=api._read_now: read.append(path) or original(path))
    assert api.load(own).vector_bytes == 16
    assert read == [Path(own)]


def test_own_file_inherits_what_it_does_not_say_and_merges_options(tmp_path: Path) -> None:
    write(tmp_path, 'inherits = "cortex-m4"\noptions = { tile = 4, rows = 1 }\n', "base")
    pools = '[{ name = "dtcm", bytes = 65536, speed = 0 }, { name = "sram", speed = 1 }]'
    target = api.load(write(tmp_path, f'inherits = "./base.toml"\npools = {pools}\noptions = {{ tile = 8 }}\n'))
    assert target.name == "mine"
    assert target.isas == api.load("cortex-m4").isas
    assert target.pools == (api.Pool("dtcm", 65536, 0), api.Pool("sram", None, 1))
    assert (target.option("tile", 1), target.option("rows", 2), target.option("other", 3)) == (8, 1, 3)


@pytest.mark.parametrize(
    ("machine", "flags", "isas"),
    [
        (
            "x86_64",
            "avx512f avx512bw avx512cd avx512dq avx512vl avx2 fma bmi1 bmi2 f16c movbe",
            "avx512 avx2 dot vec c",
        ),
        ("x86_64", "avx2 fma bmi1 bmi2 f16c movbe sse2", "avx2 dot vec c"),
        ("x86_64", "sse2", "c"),
        ("aarch64", "fp asimd crc32", "neon dot vec c"),
        ("arm64", "", "neon dot vec c"),
        ("aarch64", "avx2", "c"),
        ("riscv64", "", "c"),
    ],
)
def test_native_is_what_the_machine_can(monkeypatch: pytest.MonkeyPatch, machine: str, flags: str, isas: str) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr(api, "_cpu_flags", lambda: frozenset(flags.split()))
    target = api.load("native")
    assert (target.isas, target.compiler, target.run) == (tuple(isas.split()), "cc", "")


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(WrongUse) as caught:
        api.load("cortex-m5")
    said = "error: unknown target 'cortex-m5'\n  where  --target\n  why    the targets are aarch64, aarch64-"
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("isas = [", "it is not TOML"),
        ('inherits = "generic"\nalignment = 8', "unknown key 'alignment'; did you mean align?"),
        ('inherits = "generic"\nalign = "8"', "align must be a whole number, 0 or more, not '8'"),
        ('inherits = "generic"\nalign = true', "align must be a whole number, 0 or more, not True"),
        ('inherits = "generic"\nalign = 12', "align must be a power of two, not 12"),
        ('inherits = "generic"\nalign = 0', "align must be a power of two, not 0"),
        ('inherits = "generic"\nvector_bytes = 24', "vector_bytes must be a power of two or 0, not 24"),
        ('inherits = "generic"\nisas = "c"', "isas must be a list of strings"),
        ('inherits = "generic"\nisas = ["vec"]', 'isas must end in "c"'),
        ('inherits = "generic"\nisas = []', 'isas must end in "c"'),
        ('inherits = "generic"\nisas = ["c", "c"]', "isas names something twice"),
        ('inherits = "generic"\npools = []', "pools must name at least one memory"),
        ('inherits = "generic"\npools = ["ram"]', "pools must be a list of tables"),
        ('inherits = "generic"\npools = [{ name = "a", speed = 0, size = 1 }]', "pools must be a list of tables"),
        ('inherits = "generic"\nprefer = "speed"', "prefer must be one of ram, time, flash, balanced, not 'speed'"),
        ('inherits = "generic"\noptions = { tile = "big" }', "options must be a whole number"),
        ('inherits = "m5"', "it inherits from 'm5', which is not a target"),
        ('inherits = "./gone.toml"', "No such file"),
        ('inherits = "./mine.toml"', "it inherits from itself: mine -> mine"),
        ('inherits = "generic"\ndetect = []', "inherits and detect exclude each other"),
        ('detect = [{ machine = "x86_64" }]', "detect must be a list of tables"),
        ('description = "nothing else"', "compiler is missing"),
    ],
)
def test_a_bad_file_says_why(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(BadFile) as caught:
        api.load(write(tmp_path, text))
    assert why in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_all_problems_of_a_file_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(MccError) as caught:
        api.load(write(tmp_path, 'inherits = "generic"\ncolour = 1\nalign = "x"\n'))
    assert len(caught.value.problems) == 2


def test_the_first_rule_that_fits_says_what_to_inherit_and_adds_options(tmp_path: Path) -> None:
    rules = [(["no_such_flag"], "cortex-m4", 1), ([], "cortex-m7", 2), ([], "generic", 3)]
    text = "".join(
        f'[[detect]]\nmachine = "{platform.machine()}"\nflags = {flags}\ninherits = "{name}"\n'
        f"options = {{ dot_digits = {number} }}\n"
        for flags, name, number in rules
    )
    target = api.load(write(tmp_path, text))
    seventh = api.load("cortex-m7")
    assert (target.isas, target.option("dot_digits", 0)) == (seventh.isas, 2)
    assert dict(target.options) == {**dict(seventh.options), "dot_digits": 2}


def test_a_missing_file_is_a_bad_file(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="No such file"):
        api.load(str(tmp_path / "none.toml"))


def test_a_longer_circle_is_shown_whole(tmp_path: Path) -> None:
    write(tmp_path, 'inherits = "./b.toml"', "a")
    write(tmp_path, 'inherits = "./a.toml"', "b")
    with pytest.raises(BadFile, match="a -> b -> a"):
        api.load(str(tmp_path / "a.toml"))


@pytest.mark.parametrize("name", ["cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55"])
def test_units_that_multiply_and_add_at_once_do_so_whatever_language_a_build_names(name: str) -> None:
    """-std=c99 forbids it, -std=gnu99 allows it: results differ, and instructions by a third."""
    target = api.load(name)
    assert "-ffp-contract=fast" in target.cflags
    assert "-ffp-contract=fast" in target.build.flags  # what build files, headers and reports say
