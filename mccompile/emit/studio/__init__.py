"""The page of `mccompile studio`, and of every `--html`: one file that needs nothing from elsewhere.

In comes what `emit.analysis` says of one or several builds, out goes HTML. `view.py` says what the page is told of a
build, `page.py` puts page, style and scripts together; the scripts draw, in the order in which `page.py` lists them.
Invariant: a figure of the page is one of the analysis, and what was not measured is not shown.
"""
