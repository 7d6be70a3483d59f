"""Floor 1: what the compiler knows about the machines it writes for. One TOML file per target, read by `api`."""
