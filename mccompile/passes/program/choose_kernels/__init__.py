"""choose_kernels: kernels chosen by the arena of the whole plan, by plans on trial."""
