"""What a party of ternary descent is asked: the noisy, compressed gradient of a batch at public weights.

The proof that the noise suffices is in `method`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import PolicyRefusal
from tacit.federation.reply import Noised
from tacit.federation.step import step
from tacit.methods.cohort import Cohort, Promise
from tacit.methods.ternary.schedule import event_of
from tacit.methods.ternary.upload import Upload
from tacit.models.ghost import LARGEST_BATCH, Activation
from tacit.models.network import LARGEST_WEIGHT, Network, Perceptron, TorchNetwork
from tacit.privacy.event import Event
from tacit.rand import Rng

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class NetworkWeights:
    """The weights at which a gradient is wanted, flat."""

    weights: Floats


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """Which network is trained: a registered module, or else a perceptron with these hidden layers."""

    hidden_layer_sizes: tuple[int, ...]
    activation: Activation
    module: str | None

    def network(self, schema: Schema, radius: float) -> Network:
        """The network for this schema's rows, whose norm is at most `radius`."""
        if self.module is not None:
            return TorchNetwork(name=self.module, n_features=schema.n_columns, n_classes=schema.n_classes)
        return Perceptron(
            n_features=schema.n_columns,
            n_classes=schema.n_classes,
            hidden=self.hidden_layer_sizes,
            activation=self.activation,
            input_bound=radius,
        )


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The public facts of one run, as every party derives them.

    `batch` is q, the chance of a record to enter a batch; `rounds` counts the turns of all parties.
    """

    cohort: Cohort
    promise: Promise
    architecture: Architecture
    upload: Upload
    batch: float
    rounds: int

    @property
    def each(self) -> int:
        """How often one party is asked at most."""
        return math.ceil(self.rounds / self.cohort.n_parties)

    @cached_property
    def network(self) -> Network:
        """The network that is trained."""
        return self.architecture.network(self.cohort.schema, self.cohort.radius)

    def event(self) -> Event:
        """What one answer costs."""
        upload = self.upload
        return event_of(self.promise, mechanism=upload.mechanism, batch=self.batch, noise=upload.noise)

    def check_weights(self, weights: Floats) -> None:
        """Refuse weights that are not those of the network."""
        if weights.shape != (self.network.n_parameters,) or not (np.abs(weights) <= LARGEST_WEIGHT).all():
            raise PolicyRefusal("the weights of the question do not fit the study's network, or are too large")

    def check_table(self, table: Table) -> None:
        """Refuse a table that is too large for batches of exact sums."""
        if self.batch * table.n_records > LARGEST_BATCH / 2:
            raise PolicyRefusal(f"batch = {self.batch:g} makes too large a batch for exact sums of so many records")


@step("ternary-descent/gradient", version=2, plan=Plan, values=NetworkWeights)
def ternary_gradient(table: Table, plan: Plan, iterate: NetworkWeights, *, rng: Rng) -> Noised:
    """Draw a batch of this party's records and reply with its noisy, compressed gradient at the weights."""
    plan.check_weights(iterate.weights)
    plan.check_table(table)
    network, upload, exact = plan.network, plan.upload, plan.promise.is_exact
    sums: Any = np.zeros(network.n_parameters, dtype=np.float64 if exact else np.int64)
    n_drawn = 0
    for block in table.blocks():
        taken = poisson_sample(plan.batch, len(block.y), rng=rng)
        X, y = block.X[taken], block.y[taken]
        n_drawn += len(y)
        sums += (network.float_sum if exact else network.clipped_sum)(iterate.weights, X, y, upload.bound)
    value = upload.exactly(sums) if exact else upload.compress(sums, n_drawn, rng=rng)
    return Noised(value=value, event=plan.event())


def poisson_sample(batch: float, n: int, *, rng: Rng) -> npt.NDArray[np.bool_]:
    """Which of n records enter the batch: each by itself, with probability at most `batch` (less by under 2**-64)."""
    if batch == 1:
        return np.ones(n, dtype=bool)
    return rng.words(n) < np.uint64(int(batch * 2.0**64))
