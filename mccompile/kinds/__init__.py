"""Floor 2: the computations that kernels implement, one file each."""
