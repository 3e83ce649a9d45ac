"""Prime numbers, for hash functions that compute modulo one."""

from __future__ import annotations

#: Enough witnesses to decide every number below 3.3 * 10**24 (Sorenson & Webster, Math. Comp. 86 (2017), 985-1003).
_WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)


def is_prime(number: int) -> bool:
    """Return whether a whole number below 3.3 * 10**24 is prime (Miller-Rabin)."""
    if number < 2:
        return False
    for small in _WITNESSES:
        if number % small == 0:
            return number == small
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for witness in _WITNESSES:
        value = pow(witness, odd, number)
        if value in (1, number - 1):
            continue
        for _ in range(twos - 1):
            value = value * value % number
            if value == number - 1:
                break
        else:
            return False
    return True


def closest_prime(number: int) -> int:
    """Return the prime closest to a number, the smaller of two; at least 2.

    Examples
    --------
    >>> closest_prime(100)
    101
    """
    step = 0
    while not (is_prime(number - step) or is_prime(number + step)):
        step += 1
    return number - step if is_prime(number - step) else number + step
