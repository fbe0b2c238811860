"""Activities of thirty people from the motion sensors of a phone (HAPT).

The raw signals (50 Hz, three axes of acceleration in g and of rotation in rad/s) are cut into windows of 2.56 seconds
with half overlap, inside stretches of one activity. Each window becomes a row; no figure of another person enters it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.signal import butter, medfilt, sosfiltfilt

from tacit.data.encoding import Floats
from tacit.data.feature import Numeric, Target
from tacit.data.schema import Schema
from tacit.datasets.dataset import DataSet, Frames, PublicFile

_RATE = 50.0  # Hz
_WINDOW, _STEP = 128, 64  # samples
_ACTIVITIES = ("walking", "upstairs", "downstairs", "sitting", "standing", "laying")  # labels 1 to 6
_BANDS = ((0, 2), (2, 5), (5, 10), (10, 25))  # Hz
_FLOOR = 1e-6  # power below which a band is silent: under the noise of the sensors

# The size of each signal that a body in everyday motion does not exceed; the sensors' own ranges are wider.
_SIZE = {"body": 1.0, "gravity": 1.2, "jerk": 20.0, "gyro": 4.0, "gyro_jerk": 60.0}


def _signals(acceleration: Floats, rotation: Floats) -> dict[str, Floats]:
    """Noise taken away, and acceleration parted into gravity (below 0.3 Hz) and what the body does."""
    noise = butter(3, 20, fs=_RATE, output="sos")
    slow = butter(3, 0.3, fs=_RATE, output="sos")

    def clean(signal: Floats) -> Floats:
        smooth = np.stack([medfilt(channel, 3) for channel in signal.T], axis=1)
        return np.asarray(sosfiltfilt(noise, smooth, axis=0))

    acceleration, rotation = clean(acceleration), clean(rotation)
    gravity = np.asarray(sosfiltfilt(slow, acceleration, axis=0))
    body = acceleration - gravity
    return {
        "body": body,
        "gravity": gravity,
        "jerk": np.gradient(body, 1 / _RATE, axis=0),
        "gyro": rotation,
        "gyro_jerk": np.gradient(rotation, 1 / _RATE, axis=0),
    }


def _summaries(windows: Floats) -> dict[str, Floats]:
    """Figures of each window and axis, from windows of shape (n, samples, axes)."""
    middle = np.median(windows, axis=1, keepdims=True)
    upper, lower = np.percentile(windows, [75, 25], axis=1)
    return {
        "mean": windows.mean(axis=1),
        "std": windows.std(axis=1),
        "mad": np.median(np.abs(windows - middle), axis=1),
        "max": windows.max(axis=1),
        "min": windows.min(axis=1),
        "iqr": upper - lower,
    }


def _spectra(windows: Floats) -> dict[str, Floats]:
    """The mean frequency and the logarithm of the power in each band, by window and axis."""
    centred = windows - windows.mean(axis=1, keepdims=True)
    power = np.abs(np.fft.rfft(centred, axis=1)) ** 2 / windows.shape[1]
    frequency = np.fft.rfftfreq(windows.shape[1], 1 / _RATE)
    total = power.sum(axis=1) + _FLOOR
    figures = {"frequency": np.einsum("f,nfa->na", frequency, power) / total}
    for low, high in _BANDS:
        inside = (frequency >= low) & (frequency < high)
        figures[f"power{low}-{high}"] = np.log10(power[:, inside].sum(axis=1) + _FLOOR)
    return figures


def _correlations(windows: Floats) -> Floats:
    """The correlations of the axes x-y, x-z and y-z in each window."""
    centred = windows - windows.mean(axis=1, keepdims=True)
    covariance = np.einsum("nta,ntb->nab", centred, centred) / windows.shape[1]
    spread = np.sqrt(np.einsum("naa->na", covariance)) + 1e-9
    correlation = covariance / (spread[:, :, None] * spread[:, None, :])
    return np.stack([correlation[:, 0, 1], correlation[:, 0, 2], correlation[:, 1, 2]], axis=1)


def _bounds(signal: str, figure: str) -> tuple[float, float]:
    size = _SIZE[signal]
    if figure in ("mean", "max", "min"):
        return (-size, size)
    if figure in ("std", "mad", "iqr", "length"):
        return (0.0, size)
    if figure == "frequency":
        return (0.0, _RATE / 2)
    if figure == "correlation":
        return (-1.0, 1.0)
    return (math.log10(_FLOOR), math.log10(_WINDOW * size**2))  # Parseval: power sums to the sum of squares


def _figures() -> list[tuple[str, str, str]]:
    """Every column: its signal, its figure and its axis."""
    columns = []
    for signal in _SIZE:
        figures = ["mean", "std", "mad", "max", "min", "iqr"]
        if signal != "gravity":
            figures += ["frequency", *(f"power{low}-{high}" for low, high in _BANDS)]
        columns += [(signal, figure, axis) for figure in figures for axis in "xyz"]
        columns += [(signal, "correlation", axes) for axes in ("xy", "xz", "yz")]
        columns += [(signal, "length", "mean"), (signal, "length", "std")]
    return columns


SCHEMA = Schema(
    tuple(Numeric(f"{signal}_{figure}_{axis}", *_bounds(signal, figure)) for signal, figure, axis in _figures()),
    Target("activity", _ACTIVITIES),
)


def _rows(windows: Mapping[str, Floats]) -> Floats:
    """One row for each window, its columns as `_figures` lists them."""
    parts: list[Floats] = []
    for signal, values in windows.items():
        parts += _summaries(values).values()
        if signal != "gravity":
            parts += _spectra(values).values()
        parts.append(_correlations(values))
        length = np.linalg.norm(values, axis=2)
        parts.append(np.stack([length.mean(axis=1), length.std(axis=1)], axis=1))
    return np.concatenate(parts, axis=1)


def _starts(labels: NDArray[Any]) -> list[int]:
    """Where windows begin: inside stretches of one of the six activities."""
    starts: list[int] = []
    edges = [0, *(np.flatnonzero(np.diff(labels)) + 1).tolist(), len(labels)]
    for begin, end in pairwise(edges):
        if 1 <= labels[begin] <= len(_ACTIVITIES):
            starts += range(begin, end - _WINDOW + 1, _STEP)
    return starts


def _read(paths: Mapping[str, Path]) -> Frames:
    with np.load(paths["hapt_raw_int16.npz"], allow_pickle=False) as raw:
        acceleration, rotation = raw["acc_q"] * float(raw["acc_scale"]), raw["gyro_q"] * float(raw["gyro_scale"])
        labels, subjects, experiments = raw["label"], raw["subject"], raw["experiment"]
    parts: dict[str, list[pd.DataFrame]] = {}
    for experiment in np.unique(experiments):
        here = experiments == experiment
        signals, starts = _signals(acceleration[here], rotation[here]), _starts(labels[here])
        samples = np.array(starts)[:, None] + np.arange(_WINDOW)
        frame = pd.DataFrame(_rows({n: values[samples] for n, values in signals.items()}), columns=SCHEMA.feature_names)
        frame["activity"] = np.array(_ACTIVITIES)[labels[here][starts] - 1]
        parts.setdefault(f"subject{subjects[here][0]:02d}", []).append(frame)
    return {subject: pd.concat(parts[subject], ignore_index=True) for subject in sorted(parts)}


DATA_SETS = (
    DataSet(
        name="hapt",
        title="six activities of thirty people from the motion sensors of a phone",
        schema=SCHEMA,
        files=(PublicFile("hapt_raw_int16.npz", "7350bad6e2c9bd7666cfda5c84a7fd422a4eb16fa96cdce55419b0a89281d70a"),),
        read=_read,
        home=(
            "https://archive.ics.uci.edu/dataset/341/"
            "smartphone+based+recognition+of+human+activities+and+postural+transitions (raw signals)"
        ),
        licence="CC BY 4.0; research use",
        note=(
            "One table for each person. Windows and columns are this project's own: results do not compare with "
            "published figures for the 561 columns of UCI HAR."
        ),
    ),
)
