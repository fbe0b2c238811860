"""Private evaluation: accuracy, AUC and calibration from noisy histograms of scores."""
