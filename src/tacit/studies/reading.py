"""Read a study file: strictly, and with every error on one line that says where."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast, get_args

from tacit.data.feature import MISSING_RULES, UNKNOWN_RULES, Coding
from tacit.data.schema import Schema
from tacit.errors import SchemaError, StudyError
from tacit.privacy.guarantee import RELATIONS, UNITS, Relation, Unit
from tacit.studies.request import PRIVACY_KEYS, FederationRequest, PrivacyRequest, checked_settings
from tacit.studies.stop import read_enrolment, read_stop
from tacit.studies.strict import Section, nearest

TABLES = ("study", "target", "feature", "method", "privacy", "federation", "stop", "enrolment", "content")
BOUND_ADVICE = "give a bound that everybody knows without looking at the data"
LABEL_ADVICE = "list every value that can occur, as everybody knows them without looking at the data"

# what each kind of feature may have besides its name and kind; the first ones it must have
_KEYS = {
    "numeric": ("low", "high", "missing", "missing_value", "date", "per"),
    "categorical": ("categories", "missing", "unknown", "aliases", "date"),
    "binary": ("values", "missing", "aliases"),
}
_NEEDED = {"numeric": ("low", "high"), "categorical": ("categories",), "binary": ()}


def read_study(text: str, source: str, known_methods: Collection[str] | None) -> dict[str, Any]:
    """The fields of the `Study` that `text` says."""
    # 1. The tables: known, of the right type, none missing.
    file = _tables(text, source)
    head = Section(file["study"], source=source, path="study")
    head.check_keys(("name", "purpose", "norm_bound", "coding", "ignore"))
    # 2. What it is about, how it is to be answered, and what for.
    schema = _schema(head, file, source)
    method, settings = _method(file["method"], source, known_methods) if "method" in file else (None, {})
    with named(source):
        enrolment = read_enrolment(file["enrolment"], source) if "enrolment" in file else None
        stop = read_stop(file.get("stop"), enrolment, source) if "stop" in file or enrolment is not None else None
    return {
        "name": head.text("name", "name the study"),
        "purpose": head.text("purpose", "say in a sentence what the study wants to know"),
        "schema": schema,
        "method": method,
        "settings": settings,
        "privacy": _privacy(file["privacy"], source) if "privacy" in file else None,
        "federation": _federation(file.get("federation", {}), source),
        "stop": stop,
        "enrolment": enrolment,
        "content": file.get("content", {}),
    }


def _tables(text: str, source: str) -> dict[str, Any]:
    try:
        file = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StudyError(_syntax_message(str(error), text, source)) from None
    except (ValueError, RecursionError):  # numbers of thousands of digits, thousands of brackets within each other
        raise StudyError(f"{source}: a number or a list in it is too long to be read; write it shorter") from None
    whole = Section(file, source=source, path="")
    whole.check_keys(TABLES)
    for table in ("study", "target", "feature"):
        whole.need(table, f"add a {'[[feature]]' if table == 'feature' else f'[{table}]'} table")
    for table, content in file.items():
        if table == "feature":
            if not isinstance(content, list) or not all(isinstance(entry, dict) for entry in content):
                raise whole.error(table, "must be a list of tables; write [[feature]] above each feature")
        elif table == "stop" and isinstance(content, list):
            raise whole.error(table, "is one table; write [stop] once, and [[stop.goal]] above each coefficient")
        elif not isinstance(content, dict):
            raise whole.error(table, f"must be a table; write [{table}] on a line of its own")
    if not file["feature"]:
        raise whole.error("feature", "is empty; add a [[feature]] table")
    return file


def _syntax_message(problem: str, text: str, source: str) -> str:
    where = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)", problem)
    line = int(where[1]) if where and where[1] else len(text.splitlines())
    words = " ".join(problem.replace(where[0] if where else "", "").split())
    return f"{source}, line {line}: this is not TOML ({words}); texts need quotes, keys are written key = value"


def _schema(head: Section, file: Mapping[str, Any], source: str) -> Schema:
    target = Section(file["target"], source=source, path="target")
    target.check_keys(("name", "classes", "aliases"))
    target_name = target.text("name", "name the column that is to be predicted")
    target.need("classes", "list the classes; of two, the last is the positive one")
    form: dict[str, object] = {
        "features": [_feature(entry, k, source) for k, entry in enumerate(file["feature"], start=1)],
        "target": {"name": target_name, "classes": target.labels("classes")}
        | ({"aliases": file["target"]["aliases"]} if "aliases" in target else {}),
    }
    if "norm_bound" in head:
        form["norm_bound"] = head.number("norm_bound")
    if "coding" in head:
        form["coding"] = head.choice("coding", get_args(Coding), "reference")
    if "ignore" in head:
        form["ignore"] = head.texts("ignore")
    with named(source):
        return Schema.from_dict(form)


def _feature(entry: Mapping[str, object], position: int, source: str) -> dict[str, object]:
    name = entry.get("name")
    owner = f"feature {name!r}" if isinstance(name, str) and name else f"feature number {position}"
    section = Section(entry, source=source, path="feature", owner=owner)
    section.text("name", "name the column")
    section.need("kind", f"choose one of {', '.join(_KEYS)}")
    kind = section.choice("kind", tuple(_KEYS), "")
    section.check_keys(tuple(dict.fromkeys(("name", "kind", *(key for keys in _KEYS.values() for key in keys)))))
    for key in entry:
        if key not in ("name", "kind", *_KEYS[kind]):
            raise section.error(key, f"does not apply to a {kind} feature; it may have {', '.join(_KEYS[kind])}")
    for key in _NEEDED[kind]:
        if key not in section and not (key == "categories" and "date" in section):
            advice = BOUND_ADVICE if kind == "numeric" else LABEL_ADVICE
            raise StudyError(f"{source}: {owner}: {key} is missing; {advice}")
    _check_feature_types(section)
    return dict(entry)


def _check_feature_types(section: Section) -> None:
    for key in ("low", "high", "missing_value", "per"):
        bound = section.number(key)
        if bound is not None and not math.isfinite(bound):
            raise section.error(key, f"is {bound}; {BOUND_ADVICE}")
    for key in ("categories", "values"):
        section.labels(key)
    section.choice("missing", MISSING_RULES, "error")
    section.choice("unknown", UNKNOWN_RULES, "error")


def _method(
    table: Mapping[str, object], source: str, known_methods: Collection[str] | None
) -> tuple[str, dict[str, object]]:
    section = Section(table, source=source, path="method")
    name = section.text("name", "name the method, such as averaging")
    if known_methods is not None and name not in known_methods:
        close = nearest(name, known_methods)
        hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(known_methods))}"
        raise section.error("name", f"is {name!r}, which is no known method; {hint}")
    with named(source):
        return name, checked_settings({key: value for key, value in table.items() if key != "name"})


def _privacy(table: Mapping[str, object], source: str) -> PrivacyRequest:
    section = Section(table, source=source, path="privacy")
    section.check_keys(PRIVACY_KEYS)
    section.need("epsilon", "give it (1 is usual), or leave the whole [privacy] table out")
    epsilon = section.number("epsilon")
    assert epsilon is not None  # `need` has seen it
    person = section.text("person", "name the column that says whose a record is") if "person" in section else None
    with named(source):
        return PrivacyRequest(
            epsilon=epsilon,
            delta=section.number("delta"),
            unit=cast(Unit, section.choice("unit", UNITS, "record" if person is None else "person")),
            relation=cast(Relation, section.choice("relation", RELATIONS, "replace-one")),
            person=person,
        )


def _federation(table: Mapping[str, object], source: str) -> FederationRequest:
    section = Section(table, source=source, path="federation")
    section.check_keys(("quorum", "deadline_seconds", "colluders", "parties", "dropouts"))
    deadline = section.number("deadline_seconds")
    quorum, colluders = section.whole("quorum", least=1), section.whole("colluders", least=0)
    parties = section.texts("parties")
    with named(source):
        return FederationRequest(
            quorum=quorum,
            deadline_seconds=60.0 if deadline is None else deadline,
            colluders=colluders,
            parties=parties,
            dropouts=section.whole("dropouts", least=0) or 0,
        )


@contextmanager
def named(source: str) -> Iterator[None]:
    """Put the file's name in front of what a part of the study says is wrong with it."""
    try:
        yield
    except (SchemaError, StudyError) as error:
        message = str(error)
        is_named = message.startswith((f"{source}: ", f"{source}, line "))
        raise StudyError(message if is_named else f"{source}: {message}") from error
