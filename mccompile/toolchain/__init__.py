"""Floor 7: generated C meets the host's compiler. `build` compiles and loads, `run` runs a model on numpy arrays.

In: C files and a target.
Out: loaded libraries, runs on this machine or an emulator, measured sizes.
First: `build.py`, then `run.py`.
"""
