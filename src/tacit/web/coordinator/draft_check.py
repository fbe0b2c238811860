"""What the editor tells of a draft while it is typed: what is wrong, what it promises, and a forecast."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from tacit.errors import SettingError, StudyError
from tacit.methods import METHODS
from tacit.report.number import byte_count, duration
from tacit.studies.content import FILE_SETTINGS
from tacit.studies.forecast_process import ForecastQuestion
from tacit.studies.form import check_form, check_text, form_of
from tacit.studies.run import method_of
from tacit.studies.study import Study
from tacit.web.chart import chart
from tacit.web.coordinator.forecaster import ForecastAnswer, Forecaster
from tacit.web.coordinator.words import promise_words

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)  # at which a draft is forecast, besides its own
MOST_RECORDS = 200_000  # of all parties together, in a forecast
_WAIT_SECONDS = 25.0  # that a page without JavaScript waits for a forecast

# what the forecast assumes, by its field: default, least, most
EXPECTED = {"n_parties": (3, 1, 50), "n_records": (2000, 1, 100_000)}


@dataclass(frozen=True, kw_only=True)
class CheckedDraft:
    """A draft as it was typed, and what is to be said of it.

    Attributes:
        text: the study file; None where the fields make none.
        study: the study, if it is one.
        errors: what is wrong, by field.
    """

    text: str | None
    study: Study | None
    errors: Mapping[str, str]

    @property
    def is_good(self) -> bool:
        """Whether it may go to review."""
        return self.study is not None and not self.errors


def checked(typed: Mapping[str, str]) -> CheckedDraft:
    """What was typed, in the form or as a text, checked."""
    if "text" in typed:
        text: str | None = typed["text"]
        study, errors = check_text(typed["text"])
        if errors:
            errors = {"text": next(iter(errors.values()))}
    else:
        text, study, errors = check_form(typed)
        errors = {field: _in_the_form(words) for field, words in errors.items()}
    return CheckedDraft(text=text, study=study, errors=errors)


def _in_the_form(words: str) -> str:
    """An error in the words of the form, which has rows where a study file has tables."""
    return "no column is named yet; name one that it learns from" if words.startswith("feature is missing") else words


def fields_of(text: str) -> dict[str, str]:
    """What the editor shows of a stored draft: the form's fields, or the text where no form can hold it."""
    fields = form_of(text)
    return {"text": text} if fields is None else fields


def question_of(study: Study, typed: Mapping[str, str]) -> ForecastQuestion:
    """What to forecast of a study, with what is assumed of its parties.

    The same for every name and purpose, and for every epsilon that is forecast anyway: such changes cost no time.
    """
    named = [key for key in FILE_SETTINGS if isinstance(study.settings.get(key), str)]
    if named:  # a page must not tell what is in the files of this machine
        raise SettingError(f"method.{named[0]} names a file, and the site reads none for a forecast; use `tacit plan`")
    n_parties, n_records = (_expected(key, typed) for key in EXPECTED)
    if n_parties * n_records > MOST_RECORDS:
        raise SettingError(f"n_records: a forecast takes {MOST_RECORDS:,} records of all parties together at most")
    alike = replace(study, name="forecast", purpose="forecast")
    if study.privacy is not None and study.privacy.epsilon in EPSILONS:
        alike = replace(alike, privacy=replace(study.privacy, epsilon=1.0))
    names = study.federation.parties or tuple(f"party {k + 1}" for k in range(n_parties))
    return ForecastQuestion(
        text=alike.to_toml(), sizes=dict.fromkeys(names, n_records),
        epsilons=EPSILONS if study.privacy is not None else (), auc=_auc(typed),
    )  # fmt: skip


async def outlook_values(
    forecaster: Forecaster | None, draft: CheckedDraft, typed: Mapping[str, str], owner: str, *, wait: bool
) -> dict[str, Any]:
    """What the panel beside the form shows."""
    study = draft.study
    values: dict[str, Any] = {"draft": draft, "promise": "", "reveals": {}, "answer": None, "shown": None}
    if study is None:
        return values
    values["promise"] = promise_words(study.privacy)
    values["own_epsilon"] = None if study.privacy is None else study.privacy.epsilon
    if draft.errors or forecaster is None:
        return values
    told = method_of(study).headings()
    values["reveals"] = {heading: told[heading] for heading in ("Travels", "Revealed", "Trust")}
    try:
        question = question_of(study, typed)
    except SettingError as error:
        return values | {"answer": ForecastAnswer(error=str(error))}
    if wait:
        answer = await asyncio.to_thread(forecaster.wait, question, owner, _WAIT_SECONDS)
    else:
        answer = forecaster.ask(question, owner)
    return values | {"answer": answer, "shown": None if answer.result is None else shown(answer.result, study)}


def shown(result: Mapping[str, Any], study: Study) -> dict[str, Any]:
    """A forecast as the panel shows it, at the study's own epsilon."""
    numbers = result["numbers"]
    own = math.inf if study.privacy is None else study.privacy.epsilon
    found = [one for one in numbers["forecasts"] if _number(one["epsilon"]) == own] or numbers["forecasts"][:1]
    one, k = found[0], numbers["forecasts"].index(found[0])
    figures = [
        (f"{100 * one['accuracy']['mean']:.1f} %", f"accuracy; guessing has {100 * numbers['majority_rate']:.1f} %")
    ]
    if one["auc"] is not None:
        figures.append((f"{one['auc']['mean']:.3f}", "AUC; guessing has 0.5"))
    if one["widening"] is not None:
        figures.append((_times(_number(one["widening"]["mean"])), "as wide as exact intervals"))
    figures += [
        (f"{one['rounds']}", "rounds"),
        (byte_count(one["n_bytes"]), "travel"),
        (duration(one["seconds"]), "to compute, on this machine"),
    ]
    pictures: dict[str, Markup] = {name: chart(svg) for name, svg in result["pictures"].items()}
    return {
        "figures": figures, "words": result["words"][k], "pictures": pictures, "method": one["method"],
        "rehearsed_on": numbers["rehearsed_on"], "not_identified": one["not_identified"],
    }  # fmt: skip


def method_choices() -> list[tuple[str, str]]:
    """The methods, as a form offers them."""
    return [("", "the usual one for this promise"), *((name, name) for name in sorted(METHODS))]


def _expected(key: str, typed: Mapping[str, str]) -> int:
    default, least, most = EXPECTED[key]
    text = typed.get(key, "").strip()
    if not text:
        return default
    if not text.isascii() or not text.isdecimal() or not least <= int(text[:9]) <= most:
        raise SettingError(f"{key}: {text[:40]!r} must be a whole number from {least} to {most:,}")
    return int(text)


def _auc(typed: Mapping[str, str]) -> float | None:
    text = typed.get("auc", "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.5 < value < 1:
        raise StudyError(f"auc: {text[:40]!r} must be a number between 0.5 and 1, such as 0.8")
    return value


def _number(value: object) -> float:
    return math.inf if value in (None, "inf") else float(str(value))


def _times(value: float) -> str:
    return f"{value:.2g} times" if math.isfinite(value) else "unknown"
