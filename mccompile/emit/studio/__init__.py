"""The page of `mccompile studio`, and of every `--html`: one file that needs nothing from elsewhere.

In: what `emit.analysis` says of one or several builds.
Out: HTML, in which scripts draw; a figure of the page is one of the analysis, what was not measured is not shown.
First: `view.py`, what the page is told of a build; `page.py` puts page, style and scripts together.
"""
