"""Image functions as a small library of C: `mccompile imgproc`."""
