"""From a study to a method that is ready to run: what the file asks, checked against what the method can promise."""

from __future__ import annotations

from dataclasses import replace

from tacit.errors import StudyError
from tacit.methods import METHODS, Method, make
from tacit.studies.study import PrivacyRequest, Study

DEFAULT_PRIVATE = "private-newton"
DEFAULT_EXACT = "pooled"


def method_of(study: Study, *, method: str | None = None, epsilon: float | None = None) -> Method:
    """The study's method with its settings, or another `method` or `epsilon` in their place.

    Raises:
        StudyError: if the study asks for a promise that the method it names does not make. A `method` given here is the
            user's explicit wish and may promise less; the report says what it promises.
    """
    privacy = study.privacy
    if epsilon is not None:
        privacy = PrivacyRequest(epsilon=epsilon) if privacy is None else replace(privacy, epsilon=epsilon)
    name = method or study.method or (DEFAULT_EXACT if privacy is None else DEFAULT_PRIVATE)
    settings = dict(study.settings) if name == study.method else {}
    if name in METHODS:
        known = METHODS[name]._get_param_names()
        asked = (
            {} if privacy is None else {key: getattr(privacy, key) for key in ("epsilon", "delta", "relation", "unit")}
        )
        asked["colluders"] = study.federation.colluders
        settings |= {key: value for key, value in asked.items() if key in known and value is not None}
        if epsilon is not None and "epsilon" not in known:
            raise StudyError(f"epsilon = {epsilon:g} was asked for, and {name} promises nothing; leave the epsilon out")
    made = make(name, settings)
    if privacy is not None and method is None:
        _check_promise(made, privacy)
    if study.stop is not None and method is None:
        _check_looks(made, study)
    if study.federation.dropouts and method is None and made.needs_everybody:
        able = ", ".join(other for other, kind in METHODS.items() if not kind.needs_everybody)
        raise StudyError(
            f"federation.dropouts = {study.federation.dropouts}, and {name} needs every party in every round; "
            f"take the setting out, or choose one of {able}"
        )
    return made


def _check_promise(method: Method, privacy: PrivacyRequest) -> None:
    if "epsilon" not in method.get_params():
        raise StudyError(
            f"the study asks for epsilon = {privacy.epsilon:g}, and {method.name} promises nothing; "
            f"choose another method, or take the [privacy] table out"
        )
    if (privacy.unit, privacy.relation) != (method.unit, method.relation):
        raise StudyError(
            f"the study asks for privacy of one {privacy.unit} under {privacy.relation}, and {method.name} protects "
            f"one {method.unit} under {method.relation}; change [privacy] or the method"
        )


def _check_looks(method: Method, study: Study) -> None:
    """Refuse looks that no share of this promise can keep."""
    if study.privacy is None or not method.guarantee.is_private:
        raise StudyError(
            f"[stop] needs a [privacy] table with a finite epsilon: {method.name} without one is exact, and two exact "
            f"looks would differ by what the new parties brought"
        )
    if method.name != DEFAULT_PRIVATE:
        raise StudyError(
            f"[stop] needs intervals, and {method.name} gives none under a promise; take {DEFAULT_PRIVATE}"
        )
    if method.sizes_told != "each":
        raise StudyError(
            f"[stop] counts the enrolled records, which privacy.relation = {method.relation!r} hides; take replace-one"
        )
    if study.stop is not None and study.stop.auc is not None and method.unit != "record":
        raise StudyError(
            f"stop.auc = {study.stop.auc:g} is measured on records that the model was not fitted to, and a "
            f"{method.unit}'s records could be in both parts; aim at a coefficient, or let privacy.unit be record"
        )
    if study.federation.quorum is None:
        raise StudyError("[stop] lets parties join between looks: give federation.quorum, the fewest of a look")
