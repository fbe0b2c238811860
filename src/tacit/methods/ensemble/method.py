"""Ensemble: parties vote on public rows with classifiers of their own; all learn one classifier from the votes.

Parties   M parties, each with a classifier that it trained on its own records; a center of three nodes that adds up; a
          coordinator that relays, and holds public rows without labels
Trust     coordinator, network and at most `colluders` parties may lie, and pool what they know; no two center nodes
          collude. Nobody is trusted with data, votes, models or noise. With release="minimiser", and as the document
          prints it, the coordinator is a trusted entity: it sees every vote (or model), and its noise is all that
          protects them
Travels   coordinator -> party: the public rows, and a basis of them. Party -> center: its votes' statistic with its
          share of the noise, in three sealed envelopes. Center -> coordinator: the sum. For release="minimiser", party
          -> coordinator: its votes on every public row, or its model, and coins for the entity's noise
Revealed  the noisy statistic of the mean votes, to everybody, and the model made of it; the number of parties. For
          release="minimiser": votes or models to the entity, and the noisy model to everybody
Privacy   sound: Pure(epsilon), or Gaussian calibrated to (epsilon, delta), for all records of one party, which
          may be replaced by any others. With release="minimiser" that holds of the released model alone and the votes
          are disclosed: NotPrivate, refused unless the policy names "ensemble". paper: NotPrivate
Assumes   the public rows are public (or may be shown to the parties, with protect_auxiliary); nothing of private rows,
          for they are seen through votes only
Cost      one round; a party is sent 8 bytes a value of the rows, and sends 3 x 32 bytes for each of r (C - 1) numbers;
          r <= d + 1 is the rank of the public rows. One local fit, and one prediction of each public row
Paper     Hamm, Cao and Belkin 2016. Sound departs from it in the release: the document perturbs the minimiser, by a
          trusted entity and with noise that carries 1/lambda; here the statistic on which the minimiser depends is
          opened by a secure sum, with noise that does not carry it. Its theorems hold, with constants that are loose
          for logistic loss (`entity`); lambda = 1e-4 is its choice for local and global classifiers

Proof (sound). Votes are a function of a party's table, in [C]^N whatever the table is. By `label` a party's addend
D'A_j E / (N M) moves by at most S = sqrt(2)/M min(sigma_max(D)/sqrt N, ||mean |d_i| ||) when its whole table is
replaced, and D is made of public rows. Every party computes S from the rows that it was sent, and `privacy.noise.grid`
adds noise for S. The center opens no sum over fewer parties than the noise counts on. What is made of the opened sum is
post-processing: solver, regularisation and its choice see public values only (`fit_statistic`).

A majority vote is no sum over parties, and one party may turn all of its labels about: S is that of M = 1. So labels=
"vote" exists with release="minimiser" alone, like labels="avg", the mean of the parties' parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tacit.data.rows import Auxiliary, auxiliary_rows
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import SettingError
from tacit.federation.agreement import Ask
from tacit.federation.channel import Channel
from tacit.methods.cohort import Cohort
from tacit.methods.ensemble.classifier import LOGISTIC, check_local_classifiers
from tacit.methods.ensemble.entity import EntityRelease, default_l2_mean
from tacit.methods.ensemble.label import LabelDesign, fit_labels, fit_statistic, lengthened
from tacit.methods.ensemble.statistic import (
    DISCLOSED,
    Ballot,
    Plan,
    PublicRows,
    party_model,
    party_votes,
    vote_statistic,
)
from tacit.methods.method import Learned, Method
from tacit.methods.neighbour import Neighbours
from tacit.methods.setting import check_choice, check_whole
from tacit.models.parameter import coefficients
from tacit.privacy.event import Event, NotPrivate
from tacit.rand import Rng
from tacit.report.facts import RunFacts

Floats = npt.NDArray[np.float64]

_PAPER_L2_MEAN = 1e-4  # lambda of section 6, for local and global classifiers


class Ensemble(Method):
    """One classifier from the votes of local classifiers on public rows; privacy of a whole party.

    Args:
        epsilon: the promise to a party; infinity adds no noise and promises nothing.
        delta: its probability of failing (Gaussian noise); None takes 1e-6, and 0 asks for pure epsilon (spherical
            Laplace noise).
        labels: "soft" learns from the share of votes for each class, "vote" from majority votes, "avg" is the mean of
            the local models. The last two need release="minimiser".
        release: "statistic" opens the votes' label statistic by a secure sum, and nobody is trusted; "minimiser" lets
            a trusted entity see the votes and add noise to the classifier.
        noise: "shaped" like the public rows, or "isotropic".
        public: the rows to vote on, without labels: encoded columns, a data frame, a table, or a file's path. A file
            of a model keeps it if it is a path or a plain list.
        local: what the parties train: "logistic", "tree", "forest", "naive-bayes" or a name that every party has
            registered (`register_local_classifier`), or several of them, of which each party draws one. None is
            logistic. A party may choose for itself (`assign_local_classifier`).
        l2: regularisation of logistic local classifiers, 1/C of scikit-learn. None takes each party's own rule,
            (n / 300)^2 for n records and 1 at most (`party_l2`). With labels="avg" it is 1.
        global_l2: that of the global classifier, with the public rows as records; None takes a public rule
            (`fit_statistic`, `default_l2_mean`).
        colluders: how many parties may pool what they know; None means 1, or 0 if there is one party.
        protect_auxiliary: the released model also protects one row of `public`, which the parties still get to see;
            for release="minimiser".
        fit_intercept: whether the global classifier has an intercept, as a penalised feature.
        party_records: a public guess at the most records of a party, needed with labels="avg": the promise is to whole
            parties, so nobody is told how many records one has.
        calibration: "sound", or "paper" for the document's release and noise, which is NOT PRIVATE.

    Example:
        >>> import tacit
        >>> data = tacit.datasets.load("readmission")
        >>> parties = tacit.Federation.from_tables({name: data.tables[name] for name in ("north", "south", "west")})
        >>> model = tacit.Ensemble(epsilon=1.0, public=data.frames["public"]).fit(parties)
        >>> model.guarantee_.unit
        'party'
    """

    name = "ensemble"
    needs_everybody = False
    unit = "party"

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        labels: Literal["soft", "vote", "avg"] = "soft",
        release: Literal["statistic", "minimiser"] = "statistic",
        noise: Literal["shaped", "isotropic"] = "shaped",
        public: Auxiliary | None = None,
        local: str | Sequence[str] | None = None,
        l2: float | None = None,
        global_l2: float | None = None,
        colluders: int | None = None,
        protect_auxiliary: bool = False,
        fit_intercept: bool = True,
        party_records: int | None = None,
        calibration: Literal["sound", "paper"] = "sound",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.labels = labels
        self.release = release
        self.noise = noise
        self.public = public
        self.local = local
        self.l2 = l2
        self.global_l2 = global_l2
        self.colluders = colluders
        self.protect_auxiliary = protect_auxiliary
        self.fit_intercept = fit_intercept
        self.party_records = party_records
        self.calibration = calibration

    @property
    def trusts_an_entity(self) -> bool:
        """Whether votes or models are shown to a trusted entity."""
        return self.release == "minimiser" or self.calibration == "paper"

    def event(self) -> Event:
        """What one run costs each party; needs no data."""
        if self.trusts_an_entity:
            return NotPrivate(why=DISCLOSED)
        return self.promise.event()

    @classmethod
    def worst_neighbours(cls) -> list[Neighbours]:
        """A party whose new records turn all of its votes about, beside one that never changes."""

        settings: dict[str, object] = {"fit_intercept": False, "colluders": 0, "labels": "soft", "release": "statistic"}
        settings["global_l2"] = 1.0  # quick; it is post-processing
        cases: dict[str, tuple[int, dict[str, object]]] = {
            "one row, two classes": (2, {"public": [[1.0]]}),
            "two rows, isotropic": (2, {"public": [[1.0], [0.5]], "noise": "isotropic"}),
            "three rows, three classes": (3, {"public": [[1.0], [0.5], [1.0]]}),
        }
        return [
            Neighbours(
                label=f"all votes of a party turned about: {label}",
                first=_lone_parties(0, n_classes),
                second=_lone_parties(n_classes - 1, n_classes),
                settings=settings | own,
            )
            for label, (n_classes, own) in cases.items()
        ]

    @classmethod
    def printed_neighbours(cls) -> list[Neighbours]:
        """The same turned votes; the attacker sees the released model alone, as the document claims.

        What the trusted entity sees is no part of its claim. The printed constants are twice what is needed.
        """

        def score(method: Ensemble, opened: object) -> float:
            return float(method.coef_[0, 0])

        settings = {"public": [[1.0]], "global_l2": 20.0, "l2": 1.0, "fit_intercept": False, "release": "minimiser"}
        first, second = (_lone_parties(label, 2) for label in (0, 1))
        return [
            Neighbours(
                label=f"all votes of a party turned about: {labels}, the released model",
                first=first,
                second=second,
                settings=settings | {"labels": labels},
                score=score,
            )
            for labels in ("soft", "vote")
        ]

    def plan(self, cohort: Cohort) -> Plan:
        """The public plan of a run with this cohort."""
        if self.labels == "avg" or self.protect_auxiliary:
            _ = cohort.row_norm  # a missing bound ends it here
        if self.labels == "avg" and self.party_records is None and not cohort.n_records:
            raise SettingError(
                "party_records = None: the mean of models needs a bound on a party's number of records, which nobody "
                "is told; declare one from public knowledge (a longer model is shortened, so nothing breaks)"
            )
        return Plan(
            cohort=cohort,
            promise=self.promise.settled(cohort.n_records),
            shaped=self.noise == "shaped",
            local=self._local,
            l2=self._local_l2(cohort),
        )

    def course(self, plan: Plan) -> tuple[Ask, ...]:
        """One question to each party: its votes' statistic, or for a trusted entity its votes or its model."""
        if not self.trusts_an_entity:
            return (Ask(step=vote_statistic, event=plan.promise.event()),)
        return (Ask(step=party_model if self.labels == "avg" else party_votes, event=NotPrivate(why=DISCLOSED)),)

    @property
    def _local(self) -> tuple[str, ...]:
        if self.local is None:
            return (LOGISTIC,)
        return (self.local,) if isinstance(self.local, str) else tuple(self.local)

    def _local_l2(self, cohort: Cohort) -> float | None:
        if self.l2 is not None:
            return float(self.l2)
        if self.calibration == "paper":
            return _PAPER_L2_MEAN * cohort.n_records / cohort.n_parties
        return 1.0 if self.labels == "avg" else None

    def _check_settings(self) -> None:
        self.promise.check()
        check_choice("labels", self.labels, ("soft", "vote", "avg"))
        check_choice("release", self.release, ("statistic", "minimiser"))
        check_choice("noise", self.noise, ("shaped", "isotropic"))
        for name in ("l2", "global_l2"):
            value = getattr(self, name)
            if value is not None and not (
                isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
            ):
                raise SettingError(f"{name} = {value!r} must be a finite number above 0; it is 1/C of scikit-learn")
        if self.labels != "soft" and not self.trusts_an_entity:
            raise SettingError(
                f"labels = {self.labels!r} is no sum of votes over the parties, so no secure sum can open it; "
                f"take labels='soft', or release='minimiser', which trusts an entity with the votes"
            )
        if self.protect_auxiliary and (self.labels == "avg" or not self.trusts_an_entity):
            raise SettingError(
                "protect_auxiliary = True needs release='minimiser' and labels='soft' or 'vote': the label statistic "
                "is a function of public rows that anybody may know, and 'avg' uses none"
            )
        check_local_classifiers(self._local)
        check_whole("party_records", 1 if self.party_records is None else self.party_records)

    def _learn(self, channel: Channel, plan: Plan) -> Learned:
        if self.trusts_an_entity:
            return self._learn_by_entity(channel, plan)
        n_classes, n_features = plan.cohort.n_classes, plan.cohort.n_features
        X = auxiliary_rows(self.public, channel.schema)
        design = LabelDesign(Z=lengthened(X, plan.cohort.constant), n_classes=n_classes, shaped=plan.shaped)
        ballot = Ballot(rows=X, basis=design.basis)
        grid = plan.opening(ballot).grid
        opened = channel.sum(vote_statistic, ballot)
        present = len(channel.present) / plan.cohort.n_parties
        V = grid.from_grid(opened).reshape(-1, n_classes - 1) / present
        given = None if self.global_l2 is None else self.global_l2 / len(X)
        solution, l2_mean = fit_statistic(design, V, grid.noise_std / present, given)
        self.global_l2_ = l2_mean * len(X)
        notice = (
            f"learned from the votes of {len(channel.present)} parties on {len(X)} public rows; "
            f"the global classifier's l2 is {self.global_l2_:.4g}, a function of public values"
        )
        coef, intercept = coefficients(design.weights(solution.theta), n_features, plan.cohort.constant)
        return Learned(coef=coef, intercept=intercept, notices=(notice,))

    def _learn_by_entity(self, channel: Channel, plan: Plan) -> Learned:
        cohort = plan.cohort
        if self.labels == "avg":
            replies: Any = channel.ask(party_model)
            assert plan.l2 is not None  # of `avg`
            entity = self._entity(plan, None, plan.l2 / (self.party_records or cohort.n_largest))
            theta = entity.average([np.asarray(reply["theta"]) for reply in replies.values()])
        else:
            X = auxiliary_rows(self.public, channel.schema)
            Z = lengthened(X, cohort.constant)
            entity = self._entity(plan, Z, 1.0)
            replies = channel.ask(party_votes, PublicRows(rows=X))
            T = _mean_labels(replies, cohort.n_classes, majority=self.labels == "vote").T @ Z / len(Z)
            entity = replace(entity, l2_mean=self._global_l2_mean(entity, Z))
            theta = entity.check(fit_labels(Z, T, entity.l2_mean))
        coins = b"".join(bytes(reply["coins"]) for reply in replies.values())
        released = entity.noised(theta, rng=Rng.seeded(coins))
        notices = (
            f"a trusted entity saw the answers of all {cohort.n_parties} parties; only the released model has noise",
        )
        coef, intercept = coefficients(released, cohort.n_features, cohort.constant)
        return Learned(coef=coef, intercept=intercept, notices=notices)

    def _entity(self, plan: Plan, Z: Floats | None, l2_mean: float) -> EntityRelease:
        declared = plan.cohort.row_norm
        radius = declared if Z is None or self.protect_auxiliary else float(np.linalg.norm(Z, axis=1).max())
        return EntityRelease(
            labels=self.labels,
            promise=plan.promise,
            l2_mean=l2_mean,
            n_parties=plan.cohort.n_parties,
            n_classes=plan.cohort.n_classes,
            radius=radius,
            rows=Z,
            protect_auxiliary=self.protect_auxiliary,
        )

    def _global_l2_mean(self, entity: EntityRelease, Z: Floats) -> float:
        if self.global_l2 is not None:
            return self.global_l2 / len(Z)
        if entity.promise.is_paper:
            return _PAPER_L2_MEAN
        return default_l2_mean(entity, Z.shape[1] * (entity.n_classes - 1))

    def _facts(self, *arguments: Any) -> RunFacts:
        facts = super()._facts(*arguments)
        if self.public is None or isinstance(self.public, str | list | tuple):
            return facts
        shown = str(self.public) if isinstance(self.public, Path) else None
        return replace(facts, settings={**facts.settings, "public": shown})


def _lone_parties(label: int, n_classes: int) -> dict[str, Table]:
    """Two parties with one record each, for audits: "a" has this label, "b" the first one."""
    schema = Schema.of_arrays(1, [str(c) for c in range(n_classes)], norm_bound=1.0)
    x = np.array([[1.0]])
    return {name: Table.from_arrays(x, np.array([y]), schema) for name, y in (("a", label), ("b", 0))}


def _mean_labels(replies: Any, n_classes: int, *, majority: bool) -> Floats:
    """The share of votes for each class, or the majority's (a tie goes to the last class: the document's (6))."""
    counts = sum(np.eye(n_classes)[np.asarray(reply["votes"])] for reply in replies.values())
    if majority:
        winners = n_classes - 1 - np.argmax(counts[:, ::-1], axis=1)
        labels: Floats = np.eye(n_classes)[winners]
        return labels
    shares: Floats = counts / len(replies)
    return shares
