"""Judged pairs: files and stores of labels, read in one way."""
