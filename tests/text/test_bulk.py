"""Normalization in bulk by every normalizer, with and without a kernel."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_text import naive_normalize

from neardup.text.bulk import normalize_texts, text_buffers
from neardup.text.normalize import NORMALIZERS, has_kernel

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=80) | st.text("a é.\n漢", max_size=200)


def in_bulk(texts: list[str], normalizer: str) -> list[str]:
    data, offsets = text_buffers(pa.array(["before", *texts], pa.large_string())[1:])
    found = normalize_texts(data, offsets, normalizer)
    assert found.text[found.spans.max(initial=0) :][:64].tobytes() == b" " * 64
    return [found.text[begin:end].tobytes().decode() for begin, end in found.spans.tolist()]


@given(texts=st.lists(TEXTS, max_size=8), normalizer=st.sampled_from(list(NORMALIZERS)))
def test_bulk_text_equals_the_twin(texts: list[str], normalizer: str) -> None:
    found = in_bulk(texts, normalizer)
    if has_kernel(normalizer):
        # Kernels may leave several spaces between tokens, and some at the ends.
        found = [" ".join(filter(None, text.split(" "))) for text in found]
    assert found == [naive_normalize(text, normalizer) for text in texts]


@pytest.mark.parametrize("count", [1, 1000])
def test_text_that_grows_enlarges_the_buffer(count: int) -> None:
    spaces = "a" + " " * 5000 + "b"
    assert in_bulk([spaces] * count, "strip") == ["a " + "␠ " * 4999 + "b"] * count
