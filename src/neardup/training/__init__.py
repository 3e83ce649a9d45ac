"""Training of a classifier on labelled pairs: folds, options, calibration, cross-validated figures."""
