"""Floor 1: what the compiler knows about the machines it writes for. One TOML file per target, read by `api`.

In: a name, or a TOML file.
Out: a `Target`: flags, sets of instructions, preferences, emulator.
First: `api.py`.
"""
