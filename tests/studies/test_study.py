from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.schema import Schema
from tacit.errors import StudyError
from tacit.privacy.guarantee import LARGEST_EPSILON
from tacit.studies import FederationRequest, PrivacyRequest, Study
from tacit.studies.run import method_of
from tacit.visible import unseen

# The example of the design, word for word.
HEART = """\
[study]
name = "heart"
purpose = "Which findings predict heart disease?"

[target]
name = "disease"
classes = ["no", "yes"]          # the last one is the positive class

[[feature]]
name = "age"
kind = "numeric"                 # numeric | categorical | binary
low = 20
high = 90

[[feature]]
name = "chest_pain"
kind = "categorical"
categories = ["typical", "atypical", "non-anginal", "none"]

[method]
name = "private-newton"
# settings of that method, by their Python names

[privacy]                        # absent: no differential privacy is asked for
epsilon = 1.0
delta = 1e-6                     # optional
unit = "record"                  # record | party
relation = "replace-one"         # replace-one | add-remove

[federation]
quorum = 3
deadline_seconds = 60
colluders = 1
parties = ["cleveland", "hungarian", "switzerland", "va"]   # optional
"""


def parse(old: str = "", new: str = "") -> Study:
    assert old in HEART
    return Study.parse(HEART.replace(old, new, 1) if old else HEART, source="heart.toml")


def test_the_example_of_the_design_is_read() -> None:
    study = parse()
    assert (study.name, study.purpose) == ("heart", "Which findings predict heart disease?")
    assert study.schema == Schema.from_dict(
        {
            "features": [
                {"name": "age", "kind": "numeric", "low": 20, "high": 90},
                {
                    "name": "chest_pain",
                    "kind": "categorical",
                    "categories": ["typical", "atypical", "non-anginal", "none"],
                },
            ],
            "target": {"name": "disease", "classes": ["no", "yes"]},
        }
    )
    assert (study.method, study.settings) == ("private-newton", {})
    assert study.privacy == PrivacyRequest(epsilon=1.0, delta=1e-6, unit="record", relation="replace-one")
    assert study.federation == FederationRequest(
        quorum=3, deadline_seconds=60, colluders=1, parties=("cleveland", "hungarian", "switzerland", "va")
    )


def test_what_is_optional_may_be_absent() -> None:
    start, _ = HEART.split("[privacy]")
    study = Study.parse(start)
    assert study.privacy is None
    assert study.federation == FederationRequest(quorum=None, deadline_seconds=60.0, colluders=None, parties=None)


def test_optional_keys_of_the_study_reach_the_schema() -> None:
    extra = 'norm_bound = 2\ncoding = "full"\nignore = ["id"]\npurpose'
    study = parse("purpose", extra)
    assert study.schema.norm_bound == 2.0
    assert study.schema.coding == "full"
    assert study.schema.ignore == ("id",)


def test_settings_of_the_method_are_kept_as_they_are() -> None:
    study = parse("# settings of", 'l2 = 0.001\nn_rounds = 8\nstart = { kind = "zero", at = [0, 1.5] }\n# settings of')
    assert study.settings == {"l2": 0.001, "n_rounds": 8, "start": {"kind": "zero", "at": [0, 1.5]}}
    assert isinstance(study.settings["n_rounds"], int)


BAD = [
    ("[privacy]", "[privcy]", r"privcy is an unknown table; did you mean privacy\?"),
    ("[[feature]]", "[[features]]", r"features is an unknown table; did you mean feature\?"),
    ("purpose =", "porpoise =", r"study\.porpoise is an unknown key; did you mean study\.purpose\?"),
    ("purpose =", "zzz =", r"study\.zzz is an unknown key; known are name, purpose, norm_bound, coding, ignore"),
    ("classes =", "class =", r"target\.class is an unknown key; did you mean target\.classes\?"),
    ("low = 20", "lo = 20", r"feature 'age': feature\.lo is an unknown key; did you mean feature\.low\?"),
    ("epsilon =", "epsilom =", r"privacy\.epsilom is an unknown key; did you mean privacy\.epsilon\?"),
    ("quorum =", "quorom =", r"federation\.quorom is an unknown key; did you mean federation\.quorum\?"),
    ("low = 20\n", "", r"feature 'age': low is missing; give a bound that everybody knows without looking at the data"),
    ("high = 90\n", "", r"feature 'age': high is missing; give a bound that everybody knows"),
    ("low = 20", "low = 95", r"feature 'age': low=95\.0 must be below high=90\.0"),
    ("low = 20", "low = -inf", r"feature 'age': feature\.low is -inf; give a bound"),
    ("low = 20", 'low = "20"', r"feature 'age': feature\.low must be a number, but is a text \('20'\)"),
    ("low = 20", "low = true", r"feature 'age': feature\.low must be a number, but is a truth value \(True\)"),
    ("low = 20", "low = 1979-05-27", r"feature 'age': feature\.low must be a number, but is a date"),
    (
        "low = 20",
        'low = 20\nvalues = ["a", "b"]',
        r"feature\.values does not apply to a numeric feature; it may have low",
    ),
    ("low = 20", 'low = 20\nmissing = "indicate"', r"feature\.missing is 'indicate'.*did you mean 'indicator'\?"),
    (
        'kind = "numeric"',
        'kind = "numerical"',
        r"feature 'age': feature\.kind is 'numerical'.*did you mean 'numeric'\?",
    ),
    ('kind = "numeric"', "", r"feature 'age': feature\.kind is missing; choose one of numeric, categorical, binary"),
    ('name = "age"', "", r"feature number 1: feature\.name is missing"),
    ('name = "age"', 'name = "chest_pain"', r"feature 'chest_pain' is declared more than once"),
    ('name = "age"', 'name = "disease"', r"target 'disease' is also a feature"),
    ("categories = [", "#", r"feature 'chest_pain': categories is missing; list every value that can occur"),
    ('"typical", ', "1.5, ", r"feature\.categories has a number \(1\.5\), which is not a label"),
    ('"typical", ', '"none", ', r"feature 'chest_pain': categories has labels that mean the same"),
    ('classes = ["no", "yes"]', 'classes = ["no"]', r"target 'disease': needs two classes or more"),
    ('classes = ["no", "yes"]', 'classes = "no"', r"target\.classes must be a list of labels, but is a text"),
    ('classes = ["no", "yes"]', "", r"target\.classes is missing; list the classes"),
    ('name = "heart"', "", r"study\.name is missing; name the study"),
    ('name = "heart"', 'name = " "', r"study\.name is empty"),
    ('name = "heart"', "name = 3", r"study\.name must be a text, but is a whole number \(3\)"),
    ('name = "private-newton"', "", r"method\.name is missing; name the method"),
    ("# settings of", "epsilon = 3\n# settings of", r"method\.epsilon belongs in the \[privacy\] table"),
    ("# settings of", "l2 = nan\n# settings of", r"method\.l2 is nan"),
    ("# settings of", "a = { b = [1979-05-27] }\n# settings of", r"method\.a\.b is a date; a setting is a text"),
    ("epsilon = 1.0", "epsilon = 0", r"privacy\.epsilon = 0 must be a number above 0"),
    ("epsilon = 1.0", "epsilon = -2.5", r"privacy\.epsilon = -2\.5 must be a number above 0"),
    ("epsilon = 1.0", "epsilon = nan", r"privacy\.epsilon = nan must be a number above 0"),
    ("epsilon = 1.0", 'epsilon = "1"', r"privacy\.epsilon must be a number, but is a text \('1'\)"),
    ("epsilon = 1.0\n", "", r"privacy\.epsilon is missing; give it .* or leave the whole \[privacy\] table out"),
    ("delta = 1e-6", "delta = -1", r"privacy\.delta = -1 must lie strictly between 0 and 1"),
    ("delta = 1e-6", "delta = 1.0", r"privacy\.delta = 1\.0 must lie strictly between 0 and 1"),
    ('"record" ', '"person" ', r"privacy\.unit = 'person' needs privacy\.person: the column that says whose a record"),
    (
        '"record" ',
        '"party"\nperson = "id" ',
        r"privacy\.person = 'id' is for privacy\.unit = 'person', and",
    ),
    ('unit = "record" ', 'person = "age" ', r"privacy\.person = 'age' is a column that the model uses"),
    ('unit = "record" ', 'person = "" ', r"privacy\.person is empty; name the column that says whose a record is"),
    ('unit = "record" ', "person = 7 ", r"privacy\.person must be a text, but is a whole number"),
    ('unit = "record" ', 'person = "a\\u200bb" ', r"privacy\.person has .*, which nobody sees"),
    ('"record" ', '"recrd" ', r"privacy\.unit is 'recrd', which is unknown; did you mean 'record'\?"),
    (
        '"replace-one" ',
        '"swap" ',
        r"privacy\.relation is 'swap', which is unknown; choose one of replace-one, add-remove",
    ),
    ("quorum = 3", "quorum = 5", r"federation\.quorum = 5 can never be met by the 4 parties"),
    ("quorum = 3", "quorum = 0", r"federation\.quorum is 0; give a whole number of at least 1"),
    ("quorum = 3", "quorum = 2.5", r"federation\.quorum must be a whole number, but is a number \(2\.5\)"),
    ("quorum = 3", "quorum = true", r"federation\.quorum must be a whole number, but is a truth value"),
    ("colluders = 1", "colluders = 4", r"federation\.colluders = 4 leaves nobody honest among the 4 parties"),
    ("colluders = 1", "colluders = -1", r"federation\.colluders is -1; give a whole number of at least 0"),
    ("deadline_seconds = 60", "deadline_seconds = 0", r"federation\.deadline_seconds = 0 must be positive"),
    (
        "deadline_seconds = 60",
        "deadline_seconds = inf",
        r"federation\.deadline_seconds = inf must be positive and finite",
    ),
    ('"hungarian"', '"va"', r"federation\.parties has 'va' more than once; name each once"),
    ('"hungarian"', "7", r"federation\.parties must be a list of texts; put each entry in quotes"),
    ('"hungarian"', '""', r"federation\.parties is empty or has an empty entry"),
    ("purpose =", "norm_bound = -1\npurpose =", r"norm_bound=-1 must be a positive finite number"),
    (
        "purpose =",
        'coding = "fuller"\npurpose =',
        r"study\.coding is 'fuller', which is unknown; did you mean 'full'\?",
    ),
    ("purpose =", 'ignore = ["age"]\npurpose =', r"ignore names 'age', which is also a feature"),
]


@pytest.mark.parametrize(("old", "new", "problem"), BAD)
def test_what_is_wrong_is_named_on_one_line_after_the_file(old: str, new: str, problem: str) -> None:
    with pytest.raises(StudyError, match=rf"^heart\.toml: .*{problem}") as caught:
        parse(old, new)
    assert "\n" not in str(caught.value)
    assert str(caught.value).count("heart.toml") == 1


@pytest.mark.parametrize("table", ["study", "target"])
def test_a_missing_table_is_named(table: str) -> None:
    before, after = HEART.split(f"[{table}]\n")
    rest = after[after.index("\n[") :]
    with pytest.raises(StudyError, match=rf"^heart\.toml: {table} is missing; add a \[{table}\] table"):
        Study.parse(before + rest, source="heart.toml")


def test_a_study_may_leave_the_method_to_the_default() -> None:
    before, after = HEART.split("[method]\n")
    study = Study.parse(before + after[after.index("\n[") :], source="heart.toml")
    assert study.method is None
    assert Study.parse(study.to_toml()) == study


def test_a_study_without_features_is_refused() -> None:
    text = '[study]\nname = "a"\npurpose = "b"\n[target]\nname = "y"\nclasses = ["a", "b"]\n[method]\nname = "m"\n'
    with pytest.raises(StudyError, match=r"feature is missing; add a \[\[feature\]\] table"):
        Study.parse(text)
    with pytest.raises(StudyError, match=r"feature must be a list of tables; write \[\[feature\]\]"):
        Study.parse(text + '[feature]\nname = "age"\n')
    with pytest.raises(StudyError, match=r"feature is empty; add a \[\[feature\]\] table"):
        Study.parse("feature = []\n" + text)


def test_a_table_that_is_no_table_is_refused() -> None:
    with pytest.raises(StudyError, match=r"privacy must be a table; write \[privacy\]"):
        Study.parse("privacy = 1\n" + HEART.split("[privacy]")[0])


@pytest.mark.parametrize(
    ("old", "new", "line"), [('name = "heart"', "name = heart", 2), ('"va"]', '"va"', 34), ("[target]", "[target", 5)]
)
def test_a_slip_in_the_syntax_gives_file_and_line(old: str, new: str, line: int) -> None:
    with pytest.raises(StudyError, match=rf"^heart\.toml, line {line}: this is not TOML \(.+\); texts need") as caught:
        parse(old, new)
    assert "\n" not in str(caught.value)
    assert caught.value.__suppress_context__ or "tomllib" not in repr(caught.value.__cause__)


def test_the_method_is_looked_up_if_methods_are_known() -> None:
    assert parse().method == "private-newton"
    with pytest.raises(
        StudyError, match=r"method\.name is 'private-newton', which is no known.*known are averaging, local"
    ):
        Study.parse(HEART, known_methods=["local", "averaging"])
    text = HEART.replace("private-newton", "private_newton")
    with pytest.raises(StudyError, match="did you mean 'private-newton'"):
        Study.parse(text, known_methods=["private-newton", "local"])


def test_a_file_is_read_with_or_without_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "heart.toml"
    path.write_text(HEART, encoding="utf-8-sig")
    assert Study.read(path) == parse()


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"none\.toml: cannot be read \(No such file or directory\)"):
        Study.read(tmp_path / "none.toml")
    with pytest.raises(StudyError, match=r"cannot be read \(Is a directory\)"):
        Study.read(tmp_path)
    path = tmp_path / "latin.toml"
    path.write_bytes("name = 'é'".encode("latin-1"))
    with pytest.raises(StudyError, match=r"latin\.toml: is not UTF-8 text at byte 8"):
        Study.read(path)


def test_the_digest_ignores_layout_and_follows_meaning() -> None:
    study = parse()
    assert study.digest() == parse("low = 20", "low = 20.0  # the same").digest()
    assert study.digest() == parse("epsilon = 1.0", "epsilon = 1").digest()
    changes = [
        ("purpose =", 'coding = "full"\npurpose ='),
        ("epsilon = 1.0", "epsilon = 1.1"),
        ("quorum = 3", "quorum = 4"),
    ]
    changes += [
        ("low = 20", "low = 21"),
        ("Which", "What"),
        ("# settings", "l2 = 1\n# settings"),
        ("epsilon = 1.0", "epsilon = inf"),
    ]
    digests = {study.digest(), *(parse(old, new).digest() for old, new in changes)}
    assert len(digests) == len(changes) + 1


def test_settings_that_differ_only_in_kind_have_different_digests() -> None:
    values = ["inf", '"inf"', "-inf", '["inf"]', "1", "1.0", "true", '"1"']
    digests = {parse("# settings", f"l2 = {value}\n# settings").digest() for value in values}
    assert len(digests) == len(values)


def test_the_digest_is_pinned() -> None:
    # a party's consent is to this number: a change here breaks every consent that was given
    assert parse().digest() == "11ee233fa0a1b115e3493776ec76c9ff93301f8141d7f055ff0faf007b17f873"


def test_a_column_of_persons_makes_the_person_the_unit() -> None:
    study = parse('unit = "record" ', 'person = "patient_id" ')
    assert study.privacy == PrivacyRequest(epsilon=1.0, delta=1e-6, unit="person", person="patient_id")
    assert Study.parse(study.to_toml()) == study
    assert study.digest() != parse().digest()
    assert study.digest() != parse('unit = "record" ', 'person = "patient" ').digest()
    assert method_of(study).get_params()["unit"] == "person"
    assert method_of(parse('"record" ', '"party" ')).get_params()["unit"] == "party"
    with pytest.raises(StudyError, match="objective-perturbation protects one record under replace-one"):
        method_of(dataclasses.replace(study, method="objective-perturbation"))


def test_no_study_can_be_made_that_its_file_could_not_say() -> None:
    study = parse()
    with pytest.raises(StudyError, match=r"study\.purpose is empty"):
        dataclasses.replace(study, purpose=" ")
    with pytest.raises(StudyError, match="feature 'x0': low is missing"):
        dataclasses.replace(study, schema=Schema.of_arrays(1, ["a", "b"]))
    with pytest.raises(StudyError, match=r"method\.start is a object; a setting is"):
        dataclasses.replace(study, settings={"start": object()})
    with pytest.raises(StudyError, match=r"privacy\.unit = 'patient' is unknown"):
        PrivacyRequest(epsilon=1.0, unit="patient")  # type: ignore[arg-type]
    with pytest.raises(StudyError, match=r"federation\.parties is empty"):
        FederationRequest(parties=())


TEXT = st.text(min_size=1, max_size=100).filter(lambda text: bool(text.strip()) and unseen(text) is None)
PARTY = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,20}", fullmatch=True)
NUMBER = st.floats(allow_nan=False) | st.integers(-(2**62), 2**62)
SETTING = st.recursive(
    st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


@given(
    name=st.builds(
        "{}{}".format, st.from_regex(r"\w", fullmatch=True), TEXT.map(lambda text: re.sub(r"[/\\:]", "", text))
    ),
    settings=st.dictionaries(
        TEXT.filter(lambda key: key not in ("name", "epsilon", "delta", "unit", "relation")), SETTING, max_size=4
    ),
    epsilon=st.floats(min_value=1e-300, max_value=LARGEST_EPSILON) | st.just(math.inf),
    parties=st.none() | st.lists(PARTY, min_size=1, max_size=4, unique=True).map(tuple),
)
def test_a_written_study_reads_back_the_same(
    name: str, settings: dict[str, object], epsilon: float, parties: tuple[str, ...] | None
) -> None:
    study = dataclasses.replace(
        parse(),
        name=name,
        settings=settings,
        privacy=PrivacyRequest(epsilon=epsilon, unit="party", relation="add-remove"),
        federation=FederationRequest(parties=parties),
    )
    again = Study.parse(study.to_toml())
    assert again == study
    assert again.digest() == study.digest()
