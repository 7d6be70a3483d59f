"""Floor 7: prints the plan as files. Decides nothing."""
