"""Help that fits one screen: options and commands in groups, each with an example; --help-all shows all of it.

Invariant: every option of a model is in one group, and an example is a command line that works on a model of its kind.
"""

from __future__ import annotations

from textwrap import shorten
from typing import Any

import click

from ..base.records import dataclass
from ..option_table import ENDS, FILES, INSIDE, INT8, MEMORY, SIZES, TARGET
from .options import OPTIONS as OPTIONS_OF_MODELS
from .progress import shown
from .usage import refuse_values_of_flags
from .values import complete, is_known

_NAMES, _SHORT = 24, 52  # letters of an option, and of what it does, where not all is shown

_VERBOSE = "Show each stage with its time, passes among them."
_QUIET = "Print nothing but errors."
_ALWAYS = ("--help", "--help-all", "--verbose", "--quiet")


@dataclass(frozen=True)
class Group:
    title: str
    example: str
    common: tuple[str, ...]  # shown by --help
    others: tuple[str, ...] = ()  # shown by --help-all


def _of_models(
    title: str, example: str, common: tuple[str, ...] = (), others: tuple[str, ...] = (), behind: tuple[str, ...] = ()
) -> Group:
    """Options of the table in a group, `common` and `others` of commands in front of them, `behind` after them."""
    known = [option for option in OPTIONS_OF_MODELS.values() if option.entry.group == title]
    often = tuple(option.name for option in known if option.entry.common)
    seldom = tuple(option.name for option in known if not option.entry.common)
    return Group(title, example, (*common, *often), (*others, *seldom, *behind))


OPTIONS = (
    _of_models(FILES, "-o out --package zephyr", ("output", "layout"), ("force", "update_golden")),
    _of_models(
        TARGET, "--target cortex-m4 --prefer ram", ("serial",), ("baud", "flash"), behind=("executor", "cc", "bitwise")
    ),
    _of_models(SIZES, "--dim batch=1,time=1..64"),
    _of_models(MEMORY, "--budget ram=96K,flash=512K"),
    _of_models(INT8, "--quantize samples.npz"),
    _of_models(ENDS, "--input x=u8,scale=1/255 --output y=argmax"),
    _of_models(INSIDE, "--explain", ("explain", "pages")),
)
LEARNING = (
    Group(
        "Learning",
        "--loss cross_entropy:scores --learn all --optimizer adam",
        ("loss",),
        ("learn", "optimizer", "accumulate", "clip", "at_once", "batch_norm", "save", "learn_dtype"),
    ),
)
FEATURES = (
    Group(
        "Frames",
        "--rate 16000 --window 480 --hop 320",
        ("rate", "window", "hop", "frames", "samples"),
        ("samples_type", "padding", "window_kind", "fft", "power", "arithmetic"),
    ),
    Group("Filters", "--mels 40 --high 7600", ("mels", "low", "high"), ("mel_scale", "mel_norm")),
    Group(
        "Features",
        "--log db --coefficients 13 --delta 1",
        ("log", "coefficients", "delta"),
        (
            *("floor", "offset", "top_db", "dct", "delta_width", "delta_ends"),
            *("pcen_gain", "pcen_bias", "pcen_power", "pcen_time", "pcen_floor"),
            *("noise_even", "noise_odd", "noise_left", "pcan_strength", "pcan_offset"),
        ),
    ),
)
COMMANDS = (
    Group(
        "Compile",
        "mccompile kws.onnx -o out --target cortex-m4",
        (
            "compile",
            "quantize",
            "convert",
            "frontend",
            "kernel",
            "imgproc",
            "tokenizer",
            "llm",
            "blob",
            "slots",
            "deploy",
            "serve",
            "train",
        ),
    ),
    Group(
        "Check and measure",
        "mccompile check kws.onnx --target cortex-m4",
        ("check", "bench", "tune", "analyze", "studio", "evidence", "diff", "compare", "opt"),
    ),
    Group("See what there is", "mccompile doctor", ("boards", "targets", "ops", "doctor")),
)


class Command(click.Command):
    """A command whose --help shows what is common, and --help-all everything."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        everything = click.Option(
            ["--help-all"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_all,
            help="Show all options and exit.",
        )
        verbose = click.Option(["-v", "--verbose"], is_flag=True, expose_value=False, callback=_note, help=_VERBOSE)
        quiet = click.Option(["-q", "--quiet"], is_flag=True, expose_value=False, callback=_note, help=_QUIET)
        self.params += [verbose, quiet, everything]
        for param in filter(is_known, self.params):
            param._custom_shell_complete = complete

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        refuse_values_of_flags(self, args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with shown(ctx.meta.get(f"{__name__}.verbose", False), ctx.meta.get(f"{__name__}.quiet", False)):
            return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        everything = bool(ctx.meta.get(__name__))
        options = {param.name or "": param for param in self.get_params(ctx) if isinstance(param, click.Option)}
        helps = tuple(name for name, option in options.items() if option.opts[-1] in _ALWAYS)
        features = [group for group in FEATURES if len({*group.common, *group.others} & options.keys()) > 1]
        of_groups = {name for group in (*LEARNING, *OPTIONS, *features) for name in (*group.common, *group.others)}
        own = tuple(name for name in options if name not in of_groups and name not in helps)
        if not everything:
            formatter.write("\n")
        first, last = Group("This command", "", own), Group("Help and progress", "", helps)
        for group in (first, *LEARNING, *OPTIONS, *features, last):
            names = [*group.common, *(group.others if everything else ())]
            _write(ctx, formatter, group, [options[name] for name in names if name in options], everything)


def _write(
    ctx: click.Context, formatter: click.HelpFormatter, group: Group, options: list[click.Option], everything: bool
) -> None:
    """A group: in full, or with a line for each option."""
    records = [(option, record) for option in options if (record := option.get_help_record(ctx)) is not None]
    if not records:
        return
    title = f"{group.title}, such as {group.example}" if group.example else group.title
    if everything:
        with formatter.section(title):
            formatter.write_dl([record for _, record in records])
        return
    formatter.write(f"{title}:\n")
    for option, (names, _) in records:
        shown = names if len(names) <= _NAMES else names.split()[0]
        formatter.write(f"  {shown:<{_NAMES}}  {_first(option.help or '')}\n")


def _first(text: str) -> str:
    """The first sentence or part of it, if it is long."""
    for end in (". ", "; ", ": ", " (", ", "):
        if len(text) <= _SHORT:
            break
        text = text.partition(end)[0]
    return shorten(text.rstrip("., "), _SHORT, placeholder="...")


def _note(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.meta[f"{__name__}.{param.name}"] = value


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[__name__] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def format_commands(group: click.Group, formatter: click.HelpFormatter) -> None:
    """The commands of `mccompile --help`."""
    known = {name for kind in COMMANDS for name in kind.common}
    others = Group("Others", "", tuple(name for name in sorted(group.commands) if name not in known))
    for kind in (*COMMANDS, others):
        names = [name for name in kind.common if name in group.commands]
        if names:
            formatter.write(f"\n{kind.title}, such as {kind.example}:\n")
        for name in names:
            text = (group.commands[name].help or "").partition("\n\n")[0].replace("\n", " ")
            formatter.write(f"  {name:<9}  {_first(' '.join(text.split()))}\n")
