"""Similarity vectors: several measures of a pair of texts, side by side."""

from neardup.vector.collection import statistics_for
from neardup.vector.measuring import Measurer
from neardup.vector.prepared import Prepared
from neardup.vector.records import NO_TIME, Records
from neardup.vector.vector import VECTORS, Part, Vector

__all__ = ["NO_TIME", "VECTORS", "Measurer", "Part", "Prepared", "Records", "Vector", "statistics_for"]
