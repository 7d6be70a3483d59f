"""Floor 1: typed scalar expressions; one tree, printed as scalar C or evaluated in numpy."""
