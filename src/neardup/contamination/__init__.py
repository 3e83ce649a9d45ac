"""Which items of a test set stand in training texts."""
