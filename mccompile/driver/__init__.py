"""The stages: what the command line and Python programs call.

options.py    what can be asked for, checked once
compiling.py  one model to one package; the stages in their order
nearby.py     what other preferences would come to
jobs.py       several models or targets
apportion.py  which options of a call with several models are for which of them

In: model files and `Options`.
Out: a `Package`, or files of several.
First: `compiling.py`.
"""

from .apportion import apportion, apportioned
from .compiling import best_plans, channels_last, compile, compile_graph, pass_manager, read, settled
from .jobs import arrange, compile_all, compile_jobs, compile_several
from .nearby import neighbours
from .options import Options

__all__ = [
    "Options",
    "apportion",
    "apportioned",
    "arrange",
    "best_plans",
    "channels_last",
    "compile",
    "compile_all",
    "compile_graph",
    "compile_jobs",
    "compile_several",
    "neighbours",
    "pass_manager",
    "read",
    "settled",
]
