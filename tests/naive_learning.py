"""Training by the definitions, slow and plain: the twins of ``neardup.training``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

Row = Sequence[float]


def sigmoid(g: Sequence[float], labels: Sequence[bool]) -> tuple[float, float]:
    """Platt's sigmoid as Lin, Lin & Weng 2007 print it in their appendix, line by line."""
    prior1, prior0 = sum(labels), len(labels) - sum(labels)
    high, low = (prior1 + 1) / (prior1 + 2), 1 / (prior0 + 2)
    targets = [high if label else low for label in labels]
    a, b = 0.0, math.log((prior0 + 1) / (prior1 + 1))

    def loss(a: float, b: float) -> float:
        total = 0.0
        for value, target in zip(g, targets, strict=True):
            f = value * a + b
            if f >= 0:
                total += target * f + math.log(1 + math.exp(-f))
            else:
                total += (target - 1) * f + math.log(1 + math.exp(f))
        return total

    value = loss(a, b)
    for _ in range(100):
        h11 = h22 = 1e-12
        h21 = g1 = g2 = 0.0
        for score, target in zip(g, targets, strict=True):
            f = score * a + b
            if f >= 0:
                p, q = math.exp(-f) / (1 + math.exp(-f)), 1 / (1 + math.exp(-f))
            else:
                p, q = 1 / (1 + math.exp(f)), math.exp(f) / (1 + math.exp(f))
            d2, d1 = p * q, target - p
            h11 += score * score * d2
            h22 += d2
            h21 += score * d2
            g1 += score * d1
            g2 += d1
        if abs(g1) < 1e-5 and abs(g2) < 1e-5:
            break
        determinant = h11 * h22 - h21 * h21
        da, db = -(h22 * g1 - h21 * g2) / determinant, -(-h21 * g1 + h11 * g2) / determinant
        gd, step = g1 * da + g2 * db, 1.0
        while step >= 1e-10:
            new = loss(a + step * da, b + step * db)
            if new < value + 1e-4 * step * gd:
                a, b, value = a + step * da, b + step * db, new
                break
            step /= 2
        if step < 1e-10:
            break
    return a, b


def highest_f1(rows: Sequence[Row], labels: Sequence[bool]) -> float:
    """The highest F1 that a threshold on one measure reaches, either way round; NaN never passes."""
    best = 0.0
    for measure in range(len(rows[0])):
        for at in {row[measure] for row in rows if not math.isnan(row[measure])}:
            for passed in ([row[measure] >= at for row in rows], [row[measure] <= at for row in rows]):
                best = max(best, f1(passed, labels))
    return best


def f1(passed: Sequence[bool], labels: Sequence[bool]) -> float:
    """2 C / (R + T)."""
    found = sum(p and t for p, t in zip(passed, labels, strict=True))
    return 2 * found / (sum(passed) + sum(labels))


def groups(pairs: Sequence[tuple[int, int]]) -> list[int]:
    """For each pair the smallest document connected with it, by a walk."""
    neighbours: dict[int, set[int]] = {}
    for left, right in pairs:
        neighbours.setdefault(left, set()).add(right)
        neighbours.setdefault(right, set()).add(left)

    def smallest(document: int) -> int:
        seen, waiting = {document}, [document]
        while waiting:
            for other in neighbours[waiting.pop()] - seen:
                seen.add(other)
                waiting.append(other)
        return min(seen)

    return [smallest(left) for left, _ in pairs]


def assigned_folds(groups: Sequence[int], labels: Sequence[bool], count: int, shuffled: Sequence[int]) -> list[int]:
    """The fold of each row: the largest groups first, each to the fold whose sum of squared shares grows least."""
    names = sorted(set(groups))
    whole = [max(sum(labels), 1), max(len(labels) - sum(labels), 1)]
    group_shares = {name: [Fraction(0), Fraction(0)] for name in names}
    for group, label in zip(groups, labels, strict=True):
        group_shares[group][0 if label else 1] += Fraction(1, whole[0 if label else 1])
    fold_shares = [[Fraction(0), Fraction(0)] for _ in range(count)]
    fold: dict[int, int] = {}
    rows = {name: list(groups).count(name) for name in names}
    for place in sorted(range(len(names)), key=lambda i: (-rows[names[shuffled[i]]], i)):
        name = names[shuffled[place]]
        growth = [
            sum((h + b) ** 2 - h**2 for h, b in zip(shares, group_shares[name], strict=True)) for shares in fold_shares
        ]
        fold[name] = growth.index(min(growth))
        fold_shares[fold[name]] = [h + b for h, b in zip(fold_shares[fold[name]], group_shares[name], strict=True)]
    return [fold[group] for group in groups]


def g(machine: Any, row: list[float], skipped: int = -1) -> float:
    """g of one pair by a support vector machine, as if one measure had its mean."""
    z = []
    for j, value in enumerate(row):
        value = float(machine.fill[j]) if math.isnan(value) else value
        z.append(0.0 if j == skipped else (value - machine.center[j]) / machine.scale[j])
    total = machine.intercept
    for alpha, u in zip(machine.dual, machine.support, strict=True):
        if machine.gamma:
            total += alpha * math.exp(-machine.gamma * sum((a - b) ** 2 for a, b in zip(z, u, strict=True)))
        else:
            total += alpha * sum(a * b for a, b in zip(z, u, strict=True))
    return float(total)
