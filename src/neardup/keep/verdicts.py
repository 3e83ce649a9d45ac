"""Dropped documents with their keepers, and families, by document id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, overload

import numpy as np
import pyarrow as pa

from neardup.documents.records import Names
from neardup.keep.keepers import Families, Keepers
from neardup.kernels import Integers


class Drop(NamedTuple):
    """A dropped document, its keeper, their similarity, and its family."""

    id: Any
    keeper: Any
    similarity: float
    family: int

    @property
    def keeper_from(self) -> str:
        """Whether the keeper is of the ``input`` or of the ``reference``."""
        return "input"


class ReferenceDrop(Drop):
    """A dropped document whose keeper is of the reference."""

    keeper_from = "reference"


class Family(NamedTuple):
    """Documents that near-duplicate pairs connect.

    Attributes
    ----------
    number : int
        From 1, in the order of the families' first documents.
    members : list
        The ids of its documents, in the order of the input.
    pairs : int
        The number of its matching pairs.
    smallest, mean : float
        The smallest and the mean similarity of its matching pairs.
    complete : bool
        Whether every member matches every other one and every reference document; if not, some are only connected
        through others.
    reference : tuple
        The ids of its reference documents, for a run against a reference.
    """

    number: int
    members: list[Any]
    pairs: int
    smallest: float
    mean: float
    complete: bool
    reference: tuple[Any, ...] = ()


class DropList(Sequence[Drop]):
    """The dropped documents in the order of the input."""

    def __init__(self, names: Names, positions: Integers, keepers: Keepers, family: Integers) -> None:
        self._names, self._positions, self._keepers, self._family = names, positions, keepers, family

    def __len__(self) -> int:
        return len(self._positions)

    @overload
    def __getitem__(self, index: int) -> Drop: ...
    @overload
    def __getitem__(self, index: slice) -> list[Drop]: ...
    def __getitem__(self, index: int | slice) -> Drop | list[Drop]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = int(self._positions[index])
        keeper = int(self._keepers.keeper[at])
        return (Drop if keeper < self._names.input_count else ReferenceDrop)(
            self._names.name_at(at),
            self._names.name_at(keeper),
            float(self._keepers.similarity[at]),
            int(self._family[at]),
        )

    def __repr__(self) -> str:
        return f"<{len(self):,} dropped documents>"


def family_list(found: Families, names: Names) -> list[Family]:
    """Return the families with their members' ids."""
    order = np.argsort(found.family, kind="stable")
    order = order[found.family[order] > 0]
    of_input = order < names.input_count
    ids, reference = names.of_input(order[of_input]).to_pylist(), list[Any]()
    if names.reference_names is not None:
        reference = names.reference_names.take(pa.array(order[~of_input] - names.input_count)).to_pylist()
    sizes = np.bincount(found.family[: names.input_count], minlength=len(found.documents) + 1)[1:]
    families: list[Family] = []
    end = reference_end = 0
    for i, (size, reference_size) in enumerate(zip(sizes.tolist(), (found.documents - sizes).tolist(), strict=True)):
        begin, end = end, end + size
        reference_begin, reference_end = reference_end, reference_end + reference_size
        pairs = int(found.pairs[i])
        families.append(
            Family(
                number=i + 1,
                members=ids[begin:end],
                pairs=pairs,
                smallest=float(found.smallest[i]),
                mean=float(found.mean[i]),
                complete=pairs == size * (size - 1) // 2 + size * reference_size,
                reference=tuple(reference[reference_begin:reference_end]),
            )
        )
    return families
