"""Floor 7: generated C meets the host's compiler. `build` compiles and loads, `run` runs a model on numpy arrays."""
