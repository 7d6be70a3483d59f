"""One pair of Python and template for each image function."""
