"""Floor 4: the contract between calls and kernels, and the registry that finds and ranks them."""
