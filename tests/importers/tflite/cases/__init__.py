"""Random cases of TFLite's operators: what each is given, and how its result may differ."""
