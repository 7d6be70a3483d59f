"""Packs retrained weights into a new blob for code that was generated, and perhaps flashed, before.

The model is compiled with the options of the folder's report, and with no facts about values but those that the code
relies on. Invariant: what comes out has the identity of the code, or nothing does.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from . import __version__
from .base.dataclass_json import from_json
from .base.errors import BadFile, CheckFailed, MccError, Problem, WrongUse, raise_all
from .base.names import c_identifier
from .base.near import near
from .base.provenance import show
from .base.records import dataclass
from .driver import Options, compile, read
from .driver.training import Earlier, train
from .emit.folder import LIST, MARK
from .emit.interface import lasting
from .emit.model import identity_c
from .emit.package import Package
from .emit.several import same_weights
from .frontend.learned import write_learned
from .frontend.saved_weights import saved_weights
from .graph.ir import Graph, all_nodes
from .option_table import options
from .passes.learn.integer_weights import LearnDtype
from .passes.learn.phase_graphs import Learning

MOST_NAMED = 10  # differences in one error


@dataclass(frozen=True)
class Code:
    """What a folder's report says of one model's code."""

    folder: Path
    name: str
    prefix: str
    identity: str
    facts: tuple[str, ...]
    options: Options
    paths: Mapping[str, str]  # of the files in the folder, by their own names
    report: Mapping[str, Any]
    learning: Learning | None  # how it learns
    readers: tuple[Code, ...] = ()  # other code in the folder that reads the same blob

    def made_of(self, model: Path, facts: frozenset[str] | None, learned: Mapping[str, np.ndarray]) -> Package:
        """A model compiled as this code was. `learned`: weights in place of the model's."""
        if self.learning is None:
            return compile(model, self.options, facts)
        return train(model, self.learning, self.options, Earlier(facts, learned))


def new_blob(
    model: Path, folder: Path, name: str = "", trust: bool = False, saved: Path | None = None
) -> tuple[Mapping[str, bytes], Sequence[str]]:
    """The files with weights of the code in `folder`, by their paths there, for a model that was trained anew; and what
    the program has to be told of it. `name`: which of several models that is; `trust`: as in `Options`; `saved`: what a
    device has saved, in place of weights of the model."""
    code = read_code(folder, name)
    code = replace(code, options=replace(code.options, trust=trust))
    learned = saved_weights(saved, code.report) if saved else {}
    made = code.made_of(model, frozenset(code.facts), learned)
    if made.identity.hex() != code.identity:
        raise_all(CheckFailed, _against(model, code, made))
    raise_all(CheckFailed, _other_readers(model, code, made))
    files = {path: made.files[own] for own, path in _places(code, made)}
    return files, [*_other_schemes(code.report, json.loads(made.files[MARK]))]


def learned_model(model: Path, folder: Path, name: str, trust: bool, saved: Path, to: Path) -> Sequence[str]:
    """Writes the model that the code in `folder` was made of with the weights that a device has saved, and gives their
    names."""
    new_blob(model, folder, name, trust, saved)  # which refuses another model
    code = read_code(folder, name)
    report, learning = code.report, code.learning
    found = saved_weights(saved, report)
    weights = {name: found[name] for name in report["initial"]}
    in_integers = learning is not None and learning.learn_dtype == LearnDtype.INT8
    write_learned(model, weights, to, in_integers)
    return [*weights]


def _other_schemes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """What the macros of the header do not say any more."""
    for way in ("inputs", "outputs"):
        for was, now in zip(old[way], new[way], strict=True):
            before, after = ({**(each.get("quantized") or {})} for each in (was, now))
            if before != after and "quantized" in was:
                numbers = (f"{side.get('scales')} and {side.get('zeros')}" for side in (before, after))
                yield f"{way[:-1]} {was['name']}: scale and zero point were {' and are '.join(numbers)} now"


def read_code(folder: Path, name: str = "") -> Code:
    try:
        report = json.loads((folder / MARK).read_bytes().decode("utf-8", "surrogatepass"))
        files = {PurePosixPath(path).name: str(path) for path in report[LIST]}
        models = report.get("models", [report])
        names = [str(model["model"]) for model in models]
    except OSError as error:
        why = error.strerror or str(error)
        made = f"give the folder that `mccompile {folder} -o out` writes"
        fix = made if folder.is_file() else "name a folder that mccompile has written"
        raise BadFile(Problem(f"cannot read {folder / MARK}", str(folder), why, fix)) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        why, fix = "it is not what mccompile writes, or was edited", "compile the model into that folder again"
        raise BadFile(Problem(f"{folder / MARK} is not a report of mccompile", str(folder), why, fix)) from None
    if "targets" in report:
        why = "each target has a blob of its own there"
        fix = "compile for one target at a time, each to a folder of its own"
        raise WrongUse(Problem("no blob is made for code of several targets", str(folder), why, fix))
    chosen = [model for model in models if not name or name in (model["model"], model["prefix"])]
    if len(chosen) != 1:
        close = near(name, names) or names[0]
        fix = f"add --name {c_identifier(close)}"
        why = f"{MARK} lists {', '.join(names)}"
        what = "there is no such model in the folder" if name else "there are several models in the folder"
        raise WrongUse(Problem(what, str(folder), why, fix))
    code = _code(folder, chosen[0], files)
    if f"{code.prefix}.mcb" not in files:
        owner = chosen[0].get("weights_of", "that one")
        why = f"the weights are those of {owner}, whose constants are the same"
        raise WrongUse(Problem(f"{code.prefix} has no blob of its own", str(folder), why, f"give --name {owner}"))
    readers = (model for model in models if model is not chosen[0] and model.get("weights_of") == code.prefix)
    return replace(code, readers=tuple(_code(folder, model, files) for model in readers))


def _code(folder: Path, report: Mapping[str, Any], files: Mapping[str, str]) -> Code:
    again = "compile it again with this version"
    try:
        options = replace(from_json(Options, report["options"]), name=str(report["model"]))
        learning = Learning.from_json(report["learning"]) if "learning" in report else None
        facts = tuple(map(str, report["facts_used"]))
        prefix, identity = str(report["prefix"]), str(report["identity"])
        lasting(report)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = f"its report does not say {error}" if isinstance(error, KeyError) else str(error)
        raise BadFile(Problem("no blob can be made for this code", str(folder), why, again)) from None
    return Code(folder, options.name, prefix, identity, facts, options, files, report, learning)


def _places(code: Code, made: Package) -> Iterator[tuple[str, str]]:
    """Files that hold weights, as compiling alone calls them, and where they are in the folder."""
    holding = [f"{code.prefix}.mcb"]
    if code.options.blob == "array":
        holding.append(f"{code.prefix}.c" if code.options.single_file else f"{code.prefix}_weights.c")
    for own in holding:
        if own not in code.paths:
            raise BadFile(Problem(f"{own} is not among the files of the report", str(code.folder)))
        yield own, code.paths[own]


# -- what stands against it


def _against(model: Path, code: Code, made: Package) -> list[Problem]:
    """Why the code cannot run the model: other facts, else other steps, else other C."""
    new = json.loads(made.files[MARK])
    found = [*_other_interface(model, code.report, new)]
    if not found:
        graph = read(model, code.options)
        found = [*_missing_facts(model, code, made, graph)]
    found = found or [*_other_steps(code.report, new)] or [*_other_code(code, made)]
    if code.report.get("mccompile") != __version__:
        why = f"it was made by mccompile {code.report.get('mccompile')}, this is {__version__}"
        found.append(Problem("other versions make other code", str(code.folder), why, "compile it again"))
    left = len(found) - MOST_NAMED
    if left > 0:
        found = [*found[:MOST_NAMED], Problem(f"{left} more stand against it", str(model))]
    return found


def _other_interface(model: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Problem]:
    was, now = lasting(old), lasting(new)
    for what in was:
        if was[what] != now[what]:
            why = f"the code has {_spelt(was[what])}; the model {_spelt(now[what])}"
            fix = f"this is another architecture: {shlex.join(['mccompile', str(model), '-o', f'out-{model.stem}'])}"
            yield Problem(f"the model has other {what}", str(model), why, fix)


def _spelt(part: Any) -> str:
    """Tensors as people write them, anything else as the report does."""
    if isinstance(part, list):
        return ", ".join(map(_spelt, part)) or "none"
    if not isinstance(part, Mapping) or "dtype" not in part:
        return json.dumps(part) if part else "none"
    rest = {key: part[key] for key in ("external", "rows", "quantized") if part.get(key)}
    return f"{part['name']} {part['dtype']}{part['shape']}" + (f" {json.dumps(rest)}" if rest else "")


def _other_readers(model: Path, code: Code, made: Package) -> Iterator[Problem]:
    """Code that reads the same blob and would have weights that are not its own: where it is not of this model, too."""
    for other in code.readers:
        options = replace(other.options, trust=code.options.trust)
        its: Package | None = None
        with suppress(MccError):
            its = replace(other, options=options).made_of(model, frozenset(other.facts), {})
        if its is None or its.identity.hex() != other.identity or not same_weights(its, made):
            why = f"{other.prefix} reads the same blob, and is another network: its results would change as well"
            fix = "compile all models of the folder anew, in one call"
            yield Problem(f"the weights of {code.prefix} are not its own", str(model), why, fix)


def _missing_facts(model: Path, code: Code, made: Package, graph: Graph) -> Iterator[Problem]:
    missing = [fact for fact in code.facts if fact not in made.plan.assumptions]
    if not missing:
        return
    try:
        free = set(code.made_of(model, None, {}).plan.assumptions).difference(code.facts)
    except MccError:
        free = set()
    advice = f"compile the model to code of its own, and flash that once: {_again(model, code)}"
    if not code.options.updatable:
        advice += "\n(--updatable keeps equal constants apart, and suits scales and zero points trained anew)"
    for fact in missing:
        tensor, node = _where(fact, graph)
        instead = [other for other in free if tensor and other.startswith(f"{tensor} is rescaled")]
        why = "it does not hold for the new model"
        why += f", of which this is true: {instead[0]}" if instead else ""
        yield Problem(f"the code relies on a fact about values: {fact}", node, why, advice)


def _again(model: Path, code: Code) -> str:
    """The command for code that takes more trainings, with the options of the code that is there."""
    words, folder = ["mccompile", str(model), "-o", f"{code.folder}-new"], code.report["options"]
    more = []
    for option in options():
        value = folder.get(option.name)
        if not option.has_flag or option.name == "updatable" or value is None:
            continue
        if isinstance(value, (dict, list)):
            more.append(option.flag)
        else:
            words += [option.flag] if isinstance(value, bool) else [option.flag, str(value)]
    return shlex.join([*words, "--updatable"]) + (f", and {' '.join(more)} as before" if more else "")


def _where(fact: str, graph: Graph) -> tuple[str, str]:
    """The tensor that a fact is about, and the node that makes it, or reads it where it is a constant."""
    named = {value.name: value for node in all_nodes(graph) for value in [*node.present_inputs, *node.present_outputs]}
    found = max((name for name in named if name and fact.startswith(name)), key=len, default="")
    if not found:
        return "", ""
    value = named[found]
    node = value.producer or next((reader for reader, _ in value.uses), None)
    return found, f'node "{show(node.provenance)}" ({node.op.name})' if node is not None else ""


def _other_steps(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Problem]:
    was, now = old["steps"], new["steps"]
    for a, b in zip(was, now, strict=False):
        for what in ("name", "op", "kernel", "macs"):
            if a[what] != b[what]:
                why = f"{what}: the code has {a[what]}, the model needs {b[what]}"
                yield Problem("a step is another one", f'node "{b["name"]}" ({b["op"]})', why, _ANOTHER)
                return
    if len(was) != len(now):
        yield Problem(f"the code has {len(was)} steps, the model needs {len(now)}", "", "", _ANOTHER)


_ANOTHER = "is it of the same architecture? Compile it to code of its own"


def _other_code(code: Code, made: Package) -> Iterator[Problem]:
    for own in (f"{code.prefix}.c", f"{code.prefix}_kernels.c"):
        try:
            was = (code.folder / code.paths[own]).read_text(encoding="utf-8")
        except (OSError, KeyError, ValueError):
            continue
        now = made.files.get(own, b"").decode()
        spelt = (identity_c(identity).values() for identity in (made.identity, bytes.fromhex(code.identity)))
        for its, of_code in zip(*spelt, strict=True):
            now = now.replace(its, of_code)
        pair = _first_difference(was.splitlines(), now.splitlines())
        if pair is not None:
            why = f"{own} has\n{pair[0].strip()}\nwhere the model needs\n{pair[1].strip()}"
            yield Problem("the model needs other code", own, why, _ANOTHER)
            return
    yield Problem("the model needs other code", str(code.folder), "its constants are others", _ANOTHER)


def _first_difference(one: Sequence[str], other: Sequence[str]) -> tuple[str, str] | None:
    return next(((a, b) for a, b in zip(one, other, strict=False) if a != b), None)
