"""recognise_idioms: what exporters spell out becomes one operator again."""
