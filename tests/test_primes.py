"""Primes against a sieve, and against numbers that fool weaker tests."""

from __future__ import annotations

from math import isqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.features.signatures import closest_prime, is_prime


def sieve(end: int) -> list[bool]:
    prime = [False, False] + [True] * (end - 2)
    for i in range(2, isqrt(end) + 1):
        if prime[i]:
            for multiple in range(i * i, end, i):
                prime[multiple] = False
    return prime


PRIME = sieve(40_000)
PRIMES = [number for number, prime in enumerate(PRIME) if prime]


def test_small_numbers_are_those_of_the_sieve() -> None:
    assert [is_prime(number) for number in range(len(PRIME))] == PRIME
    assert not any(is_prime(number) for number in (-7, -2, -1))


@pytest.mark.parametrize(
    "number",
    # The smallest that are strong pseudoprimes to the first 4, 5, 6, 7, 8, 9 and 12 primes, and a Carmichael number.
    [
        3_215_031_751,
        2_152_302_898_747,
        3_474_749_660_383,
        341_550_071_728_321,
        3_825_123_056_546_413_051,
        318_665_857_834_031_151_167_461,
        561,
    ],
)
def test_pseudoprimes_are_found_out(number: int) -> None:
    assert not is_prime(number)


@pytest.mark.parametrize("exponent", [13, 17, 19, 31, 61])
def test_mersenne_primes_are_prime_and_their_neighbours_are_not(exponent: int) -> None:
    mersenne = 2**exponent - 1
    assert is_prime(mersenne)
    assert not is_prime(mersenne + 1)
    assert not is_prime(mersenne * (2**13 - 1))


@given(st.integers(-5, 30_000))
def test_the_closest_prime_is_that_of_a_search(number: int) -> None:
    assert closest_prime(number) == min(PRIMES, key=lambda prime: (abs(prime - number), prime))
