"""How alike the two documents of a pair are, from three whole numbers; thresholds as exact fractions."""

from neardup.measures.table import MEASURES, SET_MEASURES, Measure, measure
from neardup.measures.thresholds import Rule, exact_fraction, reaching, rule, similarities, threshold_of

__all__ = [
    "MEASURES",
    "SET_MEASURES",
    "Measure",
    "Rule",
    "exact_fraction",
    "measure",
    "reaching",
    "rule",
    "similarities",
    "threshold_of",
]
