"""Second moments with noise of known size, and what can be made of them.

1. *Squares.* Off the diagonal and beside their largest eigenvector they are mostly noise. That part is shrunk by the
   share of its energy that is not noise, Wiener's rule (`denoised`).
2. *Eigenvalues.* Noise of s^2 on the diagonal and s^2 / 2 off it moves the i-th eigenvalue by s^2 / 2 sum_j 1 / (l_i -
   l_j) on average, to second order. That is taken back, and values that change places are averaged (`unspread`; after
   Stein). Eigenvalues that were alike come together again, and one that lies apart stays there.
3. *Curvature.* Moments in a shape are known twice: as they were opened, and from the squares that made the shape. The
   latter, T, say in which directions rows vary. Their trace is taken from the former, and no eigenvalue is below 0.3 of
   the mean. In the eigenvectors of T, opened entries differ from those of T by about sqrt(f T_i T_j), and by noise; f
   is what is seen over all of them. Wiener's rule keeps what is not noise: the difference, times f T_i T_j / (f T_i T_j
   + its variance). So directions in which rows hardly vary stay so, and without noise nothing changes. No eigenvalue is
   then below 0.15 of the mean, or below 0.4 s sqrt(k) where that is less (`as_curvature`).
4. *Along the answer.* A matrix can be drowned while one number in it is not. Along a direction v that owes nothing to
   the noise of M, v'M v is known to s. Where opened moments say more than those of step 3, the difference x is added
   along v, times x^2 / (x^2 + s^2) (`steeper`). v is where t points beyond the intercept. Signals lie where rows vary
   most. Without this step they are weighed as if they lay in a typical direction, and models are far too flat.
5. *The mean row.* M q is c times the sum of rows. Squares tell it, too: T q, made as long along q. Opened moments
   differ from that by noise alone, or by more. Of the difference x, at right angles to q, the share 1 - E |noise|^2 /
   |x|^2 is kept, or none (James and Stein 1961). As much is left of the noise's variance (`mean_along`). All directions
   of x count alike: a mean that is off in a few is what `heavy` would take for columns that matter. The covariance of
   rows is as step 3 has it (`with_mean`).
6. *Left.* Averaging takes noise away as well. Of a matrix whose entries have independent normal noise, Stein's estimate
   tells the mean square error of what was made of it: ||made - M||^2 + s^2 (2 f - k (k + 1) / 2). f is the divergence
   of `made`. Of eigenvalues l_i that become m_i it is sum_i dm_i / dl_i + sum_{i < j} (m_i - m_j) / (l_i - l_j). Which
   values are averaged is taken as fixed, which makes f a little too small. So one standard error of chance,
   s^2 sqrt(k (k + 1)), is added. No more noise is counted than was there (`noise_left`).

All rows have the same constant c as their last entry. In the shape B they are g = B z, and q.g = c for q = B^-1 e.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_FLOOR, _LEAST = 0.4, 0.3


def constant_row(B: Floats) -> Floats:
    """q of a shape B: B q is the last unit vector, so that q.g is a row's constant."""
    row: Floats = np.linalg.solve(B, np.eye(len(B))[-1])
    return row


def with_constant(M: Floats, q: Floats, square: float) -> Floats:
    """M, changed along q alone so that q'M q = square."""
    changed: Floats = M + (square - q @ M @ q) * np.outer(q, q) / float(q @ q) ** 2
    return changed


def with_mean(M: Floats, q: Floats, along: Floats) -> Floats:
    """M with the same covariance of rows, changed so that M q = `along`."""
    before = M @ q
    changed: Floats = M - np.outer(before, before) / float(q @ before) + np.outer(along, along) / float(q @ along)
    return changed


def mean_along(M: Floats, q: Floats, noise_std: float, expected: Floats) -> tuple[Floats, float]:
    """M q, nearer to what the squares say of it, and which share of the noise's variance is left (5)."""
    along = M @ q
    if noise_std <= 0:
        return along, 1.0
    told = expected @ q
    if float(q @ told) <= 0:  # squares that are noise alone
        return along, 1.0
    told = told * float(q @ along) / float(q @ told)
    beyond = along - told
    noise = noise_std**2 / 2 * float(q @ q) * (len(q) - 1)
    kept = max(0.0, 1 - noise / max(float(beyond @ beyond), 1e-300))
    return told + kept * beyond, kept


def as_curvature(M: Floats, noise_std: float, expected: Floats, n_records: float) -> Floats:
    """M as curvature (3); `noise_std` is that of a diagonal entry, `expected` is T, up to scale.

    Guarantees:
        Symmetric. Positive definite if there is noise; M itself if there is none.
    """
    if noise_std <= 0:
        return M
    k = len(M)
    trace = min(max(float(np.trace(M)), 1e-3 * n_records), n_records)  # no row is longer than 1
    values, vectors = np.linalg.eigh((expected + expected.T) / 2)
    values = np.maximum(values, 0.0) + 1e-300
    T = np.maximum(values * (trace / values.sum()), _LEAST * trace / k)
    beyond = vectors.T @ M @ vectors - np.diag(T)
    likely = np.outer(T, T)
    variances = noise_std**2 / 2 * (1 + np.eye(k))
    f = max(0.0, float(np.sum(likely * (beyond**2 - variances)) / np.sum(likely**2)))
    kept = np.diag(T) + f * likely / (f * likely + variances) * beyond
    values, turned = np.linalg.eigh((kept + kept.T) / 2)
    floor = min(_LEAST / 2 * float(np.mean(T)), _FLOOR * noise_std * math.sqrt(k))
    turned = vectors @ turned
    lifted: Floats = (turned * np.maximum(values, floor)) @ turned.T
    return lifted


def steeper(M: Floats, opened: Floats, directions: Floats, noise_std: float) -> Floats:
    """M with what opened moments say beyond it along orthonormal `directions`, a row for each (4)."""
    for v in directions:
        beyond = float(v @ (opened - M) @ v)
        if beyond > 0:
            M = M + beyond**3 / (beyond**2 + noise_std**2) * np.outer(v, v)
    return M


def denoised(A: Floats, noise_std: float) -> Floats:
    """Squares with less noise (1); `noise_std` is that of a diagonal entry.

    Guarantees:
        Symmetric, with no negative eigenvalue.
    """
    k = len(A)
    if noise_std > 0:
        values, vectors = np.linalg.eigh(A)
        largest = values[-1] * np.outer(vectors[:, -1], vectors[:, -1])
        rest = A - largest
        diagonal = np.diag(rest)
        beside = rest - np.diag(diagonal)
        energy = float(np.sum(beside**2))
        expected = k * (k - 1) * noise_std**2 / 2
        kept = max(0.0, 1 - expected / energy) if energy > 0 else 0.0
        A = largest + np.diag(np.maximum(diagonal, 0.0)) + kept * beside
    values, vectors = np.linalg.eigh(A)
    positive: Floats = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return positive


def unspread(M: Floats, noise_std: float) -> Floats:
    """M with eigenvalues as they are on average without noise (2); `noise_std` is that of a diagonal entry."""
    values, vectors = np.linalg.eigh(M)
    means, counts = _unspread_values(values, noise_std)
    told: Floats = (vectors * np.repeat(means, counts)) @ vectors.T
    return told


def noise_left(M: Floats, noise_std: float) -> float:
    """The standard deviation of a diagonal entry's noise that `unspread` leaves on average (6); never more than it was.

    It is estimated from M alone, and rounded up by a standard error of that estimate.
    """
    if noise_std <= 0:
        return 0.0
    values = np.linalg.eigvalsh(M)
    means, counts = _unspread_values(values, noise_std)
    told, group = np.repeat(means, counts), np.repeat(np.arange(len(counts)), counts)
    is_apart = group[:, None] != group[None, :]
    apart = np.where(is_apart, values[:, None] - values[None, :], np.inf)
    bent = noise_std**2 / 2 * np.sum(1 / apart**2, axis=1)
    turned = np.sum((told[:, None] - told[None, :]) / apart) / 2  # each pair was counted twice
    freedom = float(np.sum((1 + bent) / np.repeat(counts, counts))) + float(turned)
    entries = len(M) * (len(M) + 1) / 2
    risk = float(np.sum((told - values) ** 2)) / noise_std**2 + 2 * freedom - entries
    left = min(max(risk + math.sqrt(2 * entries), 0.0), entries)
    return noise_std * math.sqrt(left / entries)


def _unspread_values(values: Floats, noise_std: float) -> tuple[Floats, list[int]]:
    """Eigenvalues moved back (2): the mean of each group of values that changed places, and how many are in it."""
    apart = values[:, None] - values[None, :]
    least = 1e-3 * noise_std + 1e-300
    apart = np.where(np.abs(apart) < least, np.copysign(least, apart), apart)
    np.fill_diagonal(apart, np.inf)
    groups: list[tuple[float, int]] = []  # of values in their order: the mean, and how many
    for value in values - noise_std**2 / 2 * np.sum(1 / apart, axis=1):
        mean, count = float(value), 1
        while groups and groups[-1][0] > mean:
            before, others = groups.pop()
            mean, count = (mean * count + before * others) / (count + others), count + others
        groups.append((mean, count))
    return np.array([mean for mean, _ in groups]), [count for _, count in groups]
