"""Floor 5: the third IR. Steps with addresses: all that is left to decide is how to spell it in C."""
