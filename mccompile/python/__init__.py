"""What `import mccompile` offers: compile a model, load one as a Python function.

In: models as paths, bytes or objects, and options as keywords.
Out: compiled models that numpy arrays can be given to.
First: `compiled.py`; `keywords.py` reads options.
"""
