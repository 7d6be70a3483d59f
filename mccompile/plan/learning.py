"""What a program that learns calls things: known to those who make its phases, and to those who print them."""

LEARN, STEP = "learn", "step"  # phases: gradients are made, and used
LOSS = "loss"  # the state that holds that of the last batch
