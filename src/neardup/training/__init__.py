"""From labelled pairs to a learned decision: folds, fitting, calibration, and figures that can be trusted."""
