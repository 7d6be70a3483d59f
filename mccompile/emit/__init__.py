"""Floor 8: prints the plan as files. Decides nothing."""
