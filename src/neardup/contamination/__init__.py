"""Which items of a test set occur in training texts."""
