"""What is wrong with a command line, as a problem like any other: click's own errors, with what was probably meant.

Invariant: a command that comes as a fix can be pasted.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise, takewhile
from pathlib import Path

import click

from ..base.errors import MccError, Problem, WrongUse
from ..base.meanings import carries_value, ours
from ..base.near import meant, near
from ..base.needless import needless
from ..base.records import dataclass
from .hidden import also_wrong
from .values import values_of

_EXAMPLES = {"DIR": "out", "FILE": "result.onnx", "SAMPLES": "samples.npz"}  # of what metavar stands for
_SHAPED = {  # what options with a grammar are told by other tools' options of one value
    "--dim": "{word}={value}",
    "--budget": "{known}={value}",
    "--shape": "{named}",
    "--input": "INPUT={value}",
}
_FIRST = {  # of what arguments are called in usages
    "FUNCTION[=VARIANT],...": "resize,cvt_color",
    "KIND": "conv",
    "MODEL...": "model.onnx",
    "MODEL": "model.onnx",
    "BEFORE": "out-before out-after",
    "AFTER": "out-after",
}
_USUAL = {
    "--dim": "1",
    "--loss": "cross_entropy:OUTPUT",
    "--learn": "last:1",
    "--optimizer": "adam,lr=0.001",
    "--budget": "96K",
    "--quantize": "samples.npz",
    "--data": "samples.npz",
    "--threads": "2",
    "--html": "report.html",
    "--tuned": "default",
    "--input": "INPUT=u8",
    "--output": "OUTPUT=argmax",
    "--io": "INPUT=external",
    "--float-error": "1e-6",
    "--recompute": "1.3",
    "--weights-window": "64K",
    "--sensitivity": "30",
    "--window": "480",
    "--hop": "320",
    "--time": "10m",
    "--database": "tuned.sqlite",
    "--serial": "/dev/ttyACM0",
}

_NUMBER = re.compile(r"[1-9]\d*", re.ASCII)
_PORT = re.compile(r"COM\d+$|/dev/(tty|cu)|tcp:")
_UNITS = {"k": 1000, "khz": 1000, "m": 10**6, "mhz": 10**6}  # what numbers are told by; others change nothing
_TIMES = ("ms", "s", "us")  # where samples are counted
_PERCENT = re.compile(r"(\d+\.?\d*) ?%", re.ASCII)


@dataclass(frozen=True)
class Line:
    """A command line as it was written."""

    arguments: Sequence[str]
    group: click.Group

    @property
    def command(self) -> click.Command:
        """The command that is named, or `compile`."""
        name = next((word for word in self.arguments[:1] if word in self.group.commands), "compile")
        return self.group.commands[name]

    @property
    def model(self) -> Path | None:
        models = (Path(word) for word in self.arguments if word.endswith(".onnx"))
        return next((model for model in models if model.is_file()), None)

    @property
    def path(self) -> str:
        return f"mccompile {self.command.name}"

    def behind(self, option: str) -> str:
        """The value that stands behind an option, or in it."""
        for n, word in enumerate(self.arguments):
            name, equals, value = word.partition("=")
            if name == option and equals:
                return value
            if word == option:
                behind = self.arguments[n + 1 : n + 2]
                return next((after for after in behind if not after.startswith("-") or after[1:2].isdigit()), "")
            if len(option) == 2 and word.startswith(option) and not word.startswith("--"):
                return word[2:]
        return ""

    def has_argument_beside(self, value: str) -> bool:
        """Is there another file that no option of ours takes?"""
        for before, word in pairwise(["", *self.arguments]):
            option = self.option(before)
            if word != value and Path(word).is_file() and (option is None or option.is_flag):
                return True
        return False

    def option(self, name: str) -> click.Option | None:
        options = (param for param in self.command.params if isinstance(param, click.Option))
        return next((param for param in options if name in (*param.opts, *param.secondary_opts)), None)


def problems_of(error: click.ClickException, line: Line) -> list[Problem]:
    """A refusal of click's, with what a missing option would hide."""
    own, found = problem_of(error, line), list[Problem]()
    if own.fix.startswith("did you mean") or not isinstance(error, click.MissingParameter):
        return [own]
    if isinstance(error.param, click.Option):
        given = line.arguments[line.arguments[:1] == [line.command.name] :]
        for other in also_wrong(line.command, given, error.param):
            found += other.problems if isinstance(other, MccError) else [problem_of(other, line)]
    return [*found, own]


def problem_of(error: click.ClickException, line: Line) -> Problem:
    """A refusal of click's, with a fix."""
    path = line.path
    shown = f"`{path} --help` shows how"
    match error:
        case click.NoSuchOption():
            why = f"`{path} --help-all` lists its options"
            return Problem(f"there is no option {error.option_name}", path, why, _option_fix(error.option_name, line))
        case click.MissingParameter(param=click.Parameter() as param):
            return _missing(param, line)
        case click.BadParameter(param=click.Parameter(type=click.Choice() as choice) as param):
            flag, known = param.opts[0] if isinstance(param, click.Option) else "", [*map(str, choice.choices)]
            given = next((word for word in error.message.split("'")[1:2]), "")
            example = f"name one of them, such as {flag} {known[0]}".replace("  ", " ")
            fix = meant(given, known, flag) or _instead(given, line) or example
            what = flag or str(param.human_readable_name).lower()
            return Problem(f"{what} cannot be {given!r}", path, f"it can be {', '.join(known)}", fix)
        case click.BadParameter(param=click.Parameter() as param):
            return _bad(param, error.message, line)
        case click.BadParameter():
            return _unreadable(error, line)
        case click.BadOptionUsage() if "does not take a value" in error.message:
            flag = error.option_name
            return Problem(f"{flag} takes no value", path, "it stands alone", _flag_fix(flag, line))
        case click.BadOptionUsage():
            option = line.option(error.option_name)
            value = _example(option) if option is not None else ""
            why = (option.help or "" if option is not None else "").partition(". ")[0]
            return Problem(f"{error.option_name} needs a value", path, why, f"such as {error.option_name} {value}")
        case click.UsageError() if "unexpected extra argument" in error.message:
            return _too_many(error.message, line)
        case _:
            return Problem(error.format_message(), path, f"`{path} --help-all` lists its options", shown)


_VALUES = re.compile(  # that a flag may be given
    r"-?\d+(\.\d+)?|on|off|yes|no|true|false|(?P<key>[a-z]+)=(?P<value>\S+)", re.ASCII | re.IGNORECASE
)
_NO = ("0", "off", "no", "false")


def refuse_values_of_flags(command: click.Command, arguments: Sequence[str]) -> None:
    """A value behind a flag, where a command takes several arguments and would take it for one of them."""
    if not any(isinstance(param, click.Argument) and param.nargs < 0 for param in command.params):
        return
    options = [param for param in command.params if isinstance(param, click.Option) and param.is_flag]
    flags = {name for option in options for name in (*option.opts, *option.secondary_opts)}
    for before, word in pairwise(arguments):
        if before in flags and _VALUES.fullmatch(word) and not Path(word).exists():
            raise click.BadOptionUsage(before, f"Option {before!r} does not take a value.")


def _flag_fix(flag: str, line: Line) -> str:
    option, given = line.option(flag), _VALUES.fullmatch(line.behind(flag))
    if given and given["key"] and line.option(other := f"--{given['key']}-{flag.strip('-').removesuffix('s')}"):
        return f"write {other} {given['value']}"
    if option is None or line.behind(flag).lower() not in _NO:
        return f"write {flag} without a value"
    others = option.secondary_opts if flag in option.opts else option.opts
    return f"write {others[0]}" if others else f"leave out {flag}"


def _option_fix(given: str, line: Line) -> str:
    """By meaning; then where another command has it; then by letters; else it is to be left out."""
    options = {opt: p for p in line.command.params for opt in (*p.opts, *p.secondary_opts) if opt.startswith("-")}
    value = line.behind(given)
    word = f"{given}{value}".lstrip("-") if len(given) == 2 and value else given.lstrip("-")
    spoken = [flag for flag in (*ours(given), *ours(word)) if flag in options and flag != given]
    if _PORT.match(value) and "--serial" in options:
        spoken = ["--serial"]
    if "=" in word and given == f"-{word[:1]}":  # -mcpu=cortex-m4
        word, _, value = word.partition("=")
        spoken = [flag for flag in ours(word) if flag in options]
    if given == "-O":
        spoken, word = ["--prefer"] if "--prefer" in options else [], value
    alone = _without(given, line)
    takes_several = any(isinstance(param, click.Argument) and param.nargs < 0 for param in line.command.params)
    if takes_several and value.endswith(".onnx") and Path(value).is_file() and line.has_argument_beside(value):
        return f"leave out {given} alone: {value} stands beside the other model"
    if spoken and spoken[0] in line.arguments and not options[spoken[0]].multiple:
        return f"leave out {alone}: {spoken[0]} says it"
    if spoken:
        choices = values_of(options[spoken[0]])
        other = _instead(value, line) if value and choices and not near(value, choices) else ""
        return _with_names(other or f"did you mean {_flag_with(options[spoken[0]], spoken[0], word, value)}?", line)
    if f"--{value}" in options:  # --format json
        return f"write --{value} in the place of {given} {value}"
    if why := needless(given, str(line.command.name)):
        return f"leave out {alone}: {why}"
    verbs = [name for name in takewhile(line.group.commands.__contains__, ours(word)) if name != line.command.name]
    if verbs:
        return f"leave out {alone}: `mccompile {verbs[0]}` does that"
    takes_argument = any(isinstance(param, click.Argument) for param in line.command.params)
    if value and alone == given and takes_argument:
        return f"leave out {given} alone: {value} stands without an option"
    others = [name for name, command in line.group.commands.items() if any(given in p.opts for p in command.params)]
    if others:
        named = [f"`mccompile {name}`" for name in others[:3]]
        has = f"{', '.join(named[:-1])} and {named[-1]} have it" if named[1:] else f"{named[0]} has it"
        return f"leave out {alone}: {has}"
    if line.arguments[:1] == [given]:  # `mccompile --versoin`
        options |= {opt: param for param in line.group.params for opt in param.opts}
    close = meant(given, [opt for opt in options if opt.startswith("--")]) if len(given) > 2 else ""
    whole = next((each for each in line.arguments if len(given) == 2 and each.startswith(given)), given)
    return close or f"leave out {whole if whole != given else alone} (`{line.path} --help-all` lists all options)"


def _without(given: str, line: Line) -> str:
    """The option with its value, where it has one: a file may be what the command works on."""
    value = line.behind(given)
    if len(given) == len("-m") and given not in line.arguments:  # -mcpu=cortex-m4
        return next((word for word in line.arguments if word.startswith(given)), given)
    if value and f"{given}={value}" in line.arguments:
        return f"{given}={value}"
    is_argument = Path(value).exists() and not line.has_argument_beside(value)
    return f"{given} {value}" if value and given in line.arguments and not is_argument else given


def _instead(value: str, line: Line) -> str:
    """The option that is asked for by a value of another one."""
    options = {opt: param for param in line.command.params for opt in param.opts}
    flags = [flag for flag in ours(value) if flag in options]
    return f"did you mean {_flag_with(options[flags[0]], flags[0], value, '')}?" if flags else ""


def _flag_with(param: click.Parameter, flag: str, word: str, value: str) -> str:
    """A flag of ours with the value that another tool's option had, as it is written here."""
    if isinstance(param, click.Option) and param.is_flag:
        return flag
    value = value if carries_value(word, flag) else ""
    if flag == "--target":
        from ..targets.boards.catalogue import core_of
        from ..targets.processors import named_processor

        known = (core_of(value) or named_processor(value)) if value and value not in values_of(param) else None
        return f"{flag} {known.target if known else value or 'native'}"
    if flag == "--dim" and "=" in value:
        return f"{flag} {value}"
    if flag in _SHAPED:
        what = near(word, values_of(param)) or next((w for w in ours(word) if w in values_of(param)), "ram")
        first = "batch" if word.startswith("batch") else "NAME"
        named = (value or "INPUT=1").replace(":", "=")
        named = named if "=" in named else f"INPUT={named}"
        value = next((w for w in ours(value) if flag == "--input" and w[0] != "-"), value)
        return f"{flag} " + _SHAPED[flag].format(
            word=first, known=what, value=value or _USUAL.get(flag, "1"), named=named
        )
    choices = values_of(param)
    if choices:
        found = value if value in choices else near(value, choices) if value else ""
        return f"{flag} {found or near(word, choices) or choices[0]}"
    if flag == "--optimizer" and value:
        return f"{flag} sgd,lr={value}"
    return f"{flag} {shlex.quote(value) if value else _example(param)}"


def _example(param: click.Parameter) -> str:
    choices = values_of(param)
    metavar = str(param.metavar or "")
    usual = next((_USUAL[flag] for flag in param.opts if flag in _USUAL), _EXAMPLES.get(metavar, metavar or "VALUE"))
    return choices[0] if choices else usual


def _missing(param: click.Parameter, line: Line) -> Problem:
    path, is_option = line.path, isinstance(param, click.Option)
    name = param.opts[0] if is_option else str(param.metavar or param.human_readable_name)
    wanted = f"{name} {_EXAMPLES.get(str(param.metavar), param.metavar or '')}".strip() if is_option else name
    why = (param.help or "") if isinstance(param, click.Option) else f"{path} works on it"
    wanted = _FIRST.get(name, wanted)
    if is_option and name in _USUAL:
        wanted = f"{name} {_USUAL[name]}"
    fix = _with_names(f"add {wanted} (`{path} --help` shows how)", line)
    if name == "AFTER" and line.model is not None:  # models are not compared, but what became of them
        stem = line.model.stem
        made = shlex.join(["mccompile", str(line.model), "-o", f"out-{stem}"])
        fix = f"compile both, and name their folders: {made} && mccompile diff BEFORE out-{stem}"
    if name == "-o":
        folder = line.behind("--output")
        extra = [word for word in line.arguments[1:] if "." not in word and not word.startswith("-")]
        if folder and "=" not in folder:
            fix, why = f"did you mean -o {folder}?", "--output says in which form an output is handed over"
        elif extra and extra[-1] == line.arguments[-1] and not Path(extra[-1]).is_file() and len(line.arguments) > 1:
            before = line.arguments[-2]
            if not before.startswith("-") and before != line.command.name:
                fix = f"did you mean -o {extra[-1]}?"
    return Problem(f"{name} is missing", path, why, fix)


def _bad(param: click.Parameter, message: str, line: Line) -> Problem:
    """A value of a wrong type, or out of range."""
    flag, default = param.opts[0], param.default
    shown = f"such as {flag} {_USUAL[flag]}" if flag in _USUAL else f"`{line.path} --help` shows how"
    given = line.behind(flag)
    what = f"{flag} cannot be {given!r}" if given else f"{flag} cannot be as it is"
    if isinstance(param.type, click.types.FloatParamType) and (percent := _PERCENT.fullmatch(given)):
        return Problem(what, line.path, message, f"did you mean {flag} {float(percent[1]) / 100:g}?")
    number = _NUMBER.match(given)
    unit = given[number.end() :].strip().lower() if number else ""
    if number and "not a valid" in message and unit not in _TIMES:  # 30dB, 2x, 16kHz
        whole = int(number[0]) * _UNITS.get(unit, 1)
        return Problem(what, line.path, message, f"did you mean {flag} {whole}?")
    low = getattr(param.type, "min", None)
    likely = default if isinstance(default, int | float) and not isinstance(default, bool) else low
    is_known = likely is not None and likely != low and flag not in _USUAL
    fix = f"did you mean {flag} {likely}?" if is_known else shown
    fix = f"did you mean {flag} {low}?" if low is not None and "range" in message else fix
    return Problem(what, line.path, message, fix)


def _unreadable(error: click.BadParameter, line: Line) -> Problem:
    """What has a grammar of its own: the message says `; did you mean` behind what it should have been."""
    what, _, close = error.message.partition("; ")
    flag = str(error.param_hint or "")
    option = line.option(flag)
    usual = f"`{line.path} --help` shows how"
    if option is not None and option.metavar:
        usual = f"such as {flag} {_USUAL[flag]}" if flag in _USUAL else f"write {flag} {option.metavar} ({usual})"
    fix = _with_names(_with_time(close, line) or usual, line)
    if not flag:
        return Problem(what, line.path, "", fix)
    named = re.match(r"'([^']*)' ", what)  # of several values of this option
    given = named[1] if named and named[1] in line.arguments else line.behind(flag)
    if flag == "--input" and line.option("--data") is not None and given.endswith((".npz", ".npy")):
        fix = f"samples are given by --data {given}; --input says in which form a program gives them"
    return Problem(f"{flag} cannot be {given!r}" if given else f"{flag} cannot be as it is", line.path, what, fix)


def _with_names(fix: str, line: Line) -> str:
    """INPUT and OUTPUT as the model names them, where it can be read at once."""
    if "INPUT=" not in fix and "OUTPUT=" not in fix and ":OUTPUT" not in fix:
        return fix
    inputs, outputs = _ends(line)
    for word, names in (("INPUT", inputs), ("OUTPUT", outputs)):
        if names:
            fix = fix.replace(f"{word}=", f"{names[0]}=").replace(f":{word}", f":{names[0]}")
    return fix


def _with_time(fix: str, line: Line) -> str:
    """The axis of --stream where none was given: `time`, `x=time`, or a hop alone."""
    from ..frontend.ends import likely_time

    model = line.model
    guessed = re.fullmatch(r"(did you mean --stream) (?:(?!INPUT)[^=]+=1|INPUT=1(,hop=\d+))\?", fix)
    if guessed is None or model is None or (likely := likely_time(model)) is None:
        return fix
    return f"{guessed[1]} {likely[0]}={likely[1]}{guessed[2] or ''}?"


def _ends(line: Line) -> tuple[list[str], list[str]]:
    from ..frontend.ends import ends

    return ends(line.model) if line.model is not None else ([], [])


def _too_many(message: str, line: Line) -> Problem:
    extra = message.partition("(")[2].rstrip(")").split()
    named = [param for param in line.command.params if isinstance(param, click.Argument)]
    takes = " ".join(str(param.metavar or param.human_readable_name) for param in named)
    why = f"{line.path} takes {takes or 'options only'}"
    first = extra[0] if extra else ""
    before = next((one for one, after in pairwise(line.arguments) if after == first), "")
    switch = line.option(before)
    if switch is not None and switch.is_flag and "." in first:
        fix = f"{before} takes no value and prints: {before} > {shlex.quote(first)}"
        return Problem(f"there is one argument too many: {first}", line.path, why, fix)
    for flag, endings in (("--data", (".npz", ".npy")), ("--golden", ()), ("-o", (".onnx",))):
        if line.option(flag) is not None and first.endswith(endings or "\0") and flag not in line.arguments:
            return Problem(f"there is one argument too many: {first}", line.path, why, f"did you mean {flag} {first}?")
    return Problem(f"there is one argument too many: {first}", line.path, why, f"leave out {first}")


def refuse_verb(args: Sequence[str], known: Mapping[str, click.Command]) -> None:
    """A word that is neither a command nor a file: what other tools call a command of ours, or a slip."""
    word = args[0]
    if not word.replace("-", "").replace("_", "").isalnum() or word.startswith("-") or Path(word).exists():
        return
    output = next((after for flag, after in pairwise(args[1:]) if flag in ("-o", "--output")), "")
    if Path(output).is_file() and not any(Path(other).is_file() for other in args[1:] if other != output):
        fix = f"-o names the folder to write, the model comes first: mccompile {shlex.quote(output)} -o {word}"
    else:
        fix = "did you mean --version?" if word == "version" else meant(word, known)
    if not fix and any(Path(other).is_file() for other in args[1:2]):
        fix = f"leave out {word}: to compile is what happens without a command"
    if fix:
        raise WrongUse(Problem(f"there is no command {word!r}", "mccompile", "`mccompile --help` lists them", fix))
