"""From labelled pairs to a classifier: folds, fitting, calibration, and figures that can be trusted."""
