from __future__ import annotations

import re
from pathlib import Path

import pytest

from tacit.data.schema import Binary, Categorical, Numeric
from tacit.errors import StudyError
from tacit.studies import Study, draft
from tacit.studies.draft import Known

SAMPLE = """\
patient,age,sex,chest_pain,smoker,grade,empty,disease
p01,63.5,male,typical,1,1,,yes
p02,37.25,female,none,0,2,,no
p03,41,female,"non-anginal, odd",0,3,,no
p04,,male,none,1,2,,yes
"""


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    path = tmp_path / "heart.csv"
    rows = "".join(f"q{k},5{k % 9}.5,male,none,0,2,,no\n" for k in range(60))
    path.write_text(SAMPLE + rows)
    return path


def filled(text: str) -> str:
    text = text.replace('# purpose = "?"', 'purpose = "To see whether it works"')
    return text.replace("# low = ?", "low = 0").replace("# high = ?", "high = 120")


def test_an_unfilled_draft_is_no_study_and_says_why(sample: Path) -> None:
    with pytest.raises(StudyError, match="feature 'age': low is missing; give a bound that everybody knows without"):
        Study.parse(draft(sample))


def test_a_draft_without_a_purpose_is_no_study(sample: Path) -> None:
    text = filled(draft(sample)).replace("purpose =", "# purpose =")
    with pytest.raises(StudyError, match=r"study\.purpose is missing"):
        Study.parse(text)


def test_a_filled_draft_is_a_study(sample: Path) -> None:
    study = Study.parse(filled(draft(sample)))
    assert study.name == "heart"
    assert study.schema.features == (
        Numeric("age", 0.0, 120.0, missing="indicator"),
        Binary("sex", ("female", "male")),
        Categorical("chest_pain", ("non-anginal, odd", "none", "typical")),
        Binary("smoker", ("0", "1")),
        Numeric("grade", 0.0, 120.0),
    )
    assert study.schema.target.name == "disease"
    assert study.schema.target.classes == ("no", "yes")
    assert study.schema.ignore == ("patient", "empty")


def test_no_number_of_a_numeric_column_is_in_the_draft(sample: Path) -> None:
    text = draft(sample)
    assert not re.search(r"63\.5|37\.25|41|p01", text)


def test_codes_are_pointed_out(sample: Path) -> None:
    assert 'only 3 different numbers: if they are codes, make it "categorical"' in draft(sample)


def test_another_column_can_be_the_target(sample: Path) -> None:
    study = Study.parse(filled(draft(sample, target="sex")))
    assert study.schema.target.classes == ("female", "male")
    assert "disease" in study.schema.feature_names
    with pytest.raises(StudyError, match=r"heart\.csv: target 'desease' is no column; did you mean 'disease'\?"):
        draft(sample, target="desease")


def test_a_target_with_too_many_values_must_be_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    path.write_text("a,b\n" + "".join(f"{k % 2},{k}\n" for k in range(60)))
    text = draft(path)
    assert "the sample has 60 different values here: is this the target?" in text
    with pytest.raises(StudyError, match=r"target\.classes is missing"):
        Study.parse(text)


def test_names_that_toml_would_trip_over_survive(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text('"a ""quoted"" \\ name",b\n"x=y",0\n"]#",1\n"é",1\n', encoding="utf-8")
    study = Study.parse(filled(draft(path)))
    assert study.schema.features == (Categorical('a "quoted" \\ name', ("]#", "x=y", "é")),)
    path.write_text('a,b\n"x\ny",0\nz,1\nz,1\n', encoding="utf-8")
    with pytest.raises(StudyError, match=r"feature\.values has U\+000A"):
        Study.parse(filled(draft(path)))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is not a CSV file"),
        (b"a,b\n1,2,3\n", "is not a CSV file"),
        (b"a,\xe9\n1,2\n", "is not a CSV file in UTF-8"),
        (b"a,a\n1,2\n", "the header line has 'a' more than once"),
        (b"a,\n1,2\n", "the header line has a column without a name"),
        (b"a,b\n", "has 0 records and 2 columns"),
        (b"a\n1\n", "has 1 records and 1 columns"),
    ],
)
def test_a_sample_that_is_no_table_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    with pytest.raises(StudyError, match=rf"bad\.csv: {problem}"):
        draft(path)


def test_a_sample_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"none\.csv: cannot be read \(No such file or directory\)"):
        draft(tmp_path / "none.csv")


def test_a_sample_without_features_says_so(tmp_path: Path) -> None:
    path = tmp_path / "thin.csv"
    path.write_text("a,b\nx,0\nx,1\n")
    assert "No column of the sample looks like a feature" in draft(path)


def test_what_a_human_knows_makes_the_draft_a_study(sample: Path) -> None:
    known = Known(name="hearts", purpose="Who is ill?", bounds={"age": (18, 100), "grade": (1, 3.5)})
    text = draft(sample, known=known)
    study = Study.parse(text)
    assert (study.name, study.purpose) == ("hearts", "Who is ill?")
    assert study.schema.features[0] == Numeric("age", 18.0, 100.0, missing="indicator")
    assert study.schema.features[4] == Numeric("grade", 1.0, 3.5)
    assert "take away the #" not in text


@pytest.mark.parametrize(
    ("bounds", "complaint"),
    [
        ({"agee": (0, 1)}, "'agee' has bounds and is no numeric feature; did you mean 'age'"),
        ({"sex": (0, 1)}, "'sex' has bounds and is no numeric feature; the numeric features are age, grade"),
        ({"age": (100, 18)}, "bounds of 'age' are 100 and 18; give two finite numbers, the lower one first"),
        ({"age": (0, float("inf"))}, "give two finite numbers"),
    ],
)
def test_bounds_that_fit_nothing_are_refused(sample: Path, bounds, complaint) -> None:
    with pytest.raises(StudyError, match=complaint):
        draft(sample, known=Known(bounds=bounds))
