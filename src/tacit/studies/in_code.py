"""A study in code: checked, planned and run, as `tacit check`, `tacit plan` and `tacit fit` do it with its file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias

import pandas as pd

from tacit.data.inspection import Inspection, inspect_file
from tacit.data.table import Table
from tacit.errors import SettingError
from tacit.federation.federation import Federation
from tacit.federation.policy import Policy
from tacit.federation.split import check_files
from tacit.methods import METHODS, Method
from tacit.privacy.guarantee import Guarantee
from tacit.report.plain import printable
from tacit.report.verdict import forecast_words
from tacit.storage import write_whole
from tacit.studies import study as written
from tacit.studies.forecast import Outlook, outlook_of
from tacit.studies.looking import fit_in_looks
from tacit.studies.notebook import study_html
from tacit.studies.rehearsal import Rehearsal
from tacit.studies.result import named_after
from tacit.studies.run import method_of

Records: TypeAlias = str | Path | pd.DataFrame | Table
"""A party's records: the path of a CSV, TSV or Parquet file, a data frame, or a table."""


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """What a study would promise and cost, before anybody's records are read; `print(plan)` tells it.

    Attributes:
        study: what is asked.
        method: the method, not yet fitted.
        guarantee: what a run promises.
        outlook: the rehearsals, if sizes were given.
    """

    study: written.Study
    method: Method
    guarantee: Guarantee
    outlook: Outlook | None = None

    def __str__(self) -> str:
        """The plan in words."""
        target = self.study.schema.target
        lines = [
            f"Study     {self.study.name}: {self.study.purpose}",
            f"Predicts  {target.name} ({', '.join(target.classes)})",
            f"From      {len(self.study.schema.features)} features, {self.study.schema.n_columns} encoded columns",
            f"Method    {self.method.name}",
            f"Spends    {self.guarantee.plain_words()}",
        ]
        for found in () if self.outlook is None else self.outlook.forecasts:
            told = forecast_words(
                found.epsilon,
                useful=found.is_useful,
                accuracy_gain=found.accuracy_gain.mean,
                log_loss_gain=found.log_loss_gain.mean,
            )
            lines.append(f"Forecast  {told}")
        return "\n".join(printable(line) for line in lines)


def check_records(study: written.Study, path: str | Path) -> Inspection:
    """What does not fit the study in a party's own file: line, column and value."""
    return inspect_file(Path(path), study.schema, person=study.person)


def plan_of(study: written.Study, sizes: Mapping[str, int] | None, public: Table | None) -> StudyPlan:
    """What the study would promise; with the parties' `sizes`, what to expect of it, rehearsed."""
    method = method_of(study)
    guarantee = method.guarantee
    outlook = None
    if sizes is not None:
        outlook = outlook_of(Rehearsal(study=study, sizes=sizes, public=public), [])
    return StudyPlan(study=study, method=method, guarantee=guarantee, outlook=outlook)


def fit_study(
    study: written.Study, parties: Federation | Mapping[str, Records], settings: Mapping[str, object]
) -> Method:
    """The study's model, fitted to the parties; its report names the study."""
    model = method_of(study)
    model.guarantee  # noqa: B018  # refuses bad settings before any record is read
    if isinstance(parties, Federation):
        if settings:
            raise SettingError(f"a Federation has its own {', '.join(settings)}; give them where it is made")
        return named_after(model.fit(parties), study)
    tables = tables_of(study, parties)
    given = {"policy": Policy.disclosing_everything(), **settings}  # whoever runs this holds every record already
    if study.stop is not None:
        return named_after(fit_in_looks(study, tables, **given).model, study)
    dropouts = study.federation.dropouts_among(len(tables))
    federation = Federation.from_tables(tables, study=study.name, dropouts=dropouts, **given)  # type: ignore[arg-type]
    return named_after(model.fit(federation), study)


def tables_of(study: written.Study, parties: Mapping[str, Records]) -> dict[str, Table]:
    """Each party's records as a table of the study."""
    if not isinstance(parties, Mapping) or not parties:
        raise SettingError(
            f"parties is a {type(parties).__name__}; give a Federation, or names with files or data frames, such as "
            '{"north": "north.csv", "south": "south.csv"}'
        )
    check_files({name: data for name, data in parties.items() if isinstance(data, str | Path)})
    return {name: _table(study, name, data) for name, data in parties.items()}


def _table(study: written.Study, name: str, data: Records) -> Table:
    if isinstance(data, Table):
        return data
    if isinstance(data, pd.DataFrame):
        return Table.from_frame(data, study.schema, name=name, person=study.person)
    if isinstance(data, str | Path):
        return Table.from_file(data, study.schema, person=study.person)
    raise SettingError(f"party {name!r} has a {type(data).__name__}; give a file's path, a data frame or a Table")


class RunnableStudy(written.Study):
    """One question to several parties, in code or as a file: `from_file` and `save` go from one to the other.

    `privacy` and `federation` may be given as the tables of a study file are: `privacy={"epsilon": 1.0}`.
    `study.check("north.csv")` tells what does not fit in a file.
    `study.fit({"north": "north.csv", "south": "south.csv"})` is the fitted model.

    Guarantees:
        Two studies with the same `digest()` ask the same. `Study.parse(study.to_toml()) == study`. No text of it
        holds a character that a reader would not see.

    Example:
        >>> import tacit
        >>> study = tacit.Study(
        ...     name="heart",
        ...     purpose="Does age predict heart disease?",
        ...     schema=tacit.Schema((tacit.Numeric("age", 20, 90, per=10),), tacit.Target("disease", ("no", "yes"))),
        ...     privacy={"epsilon": 1.0},
        ... )
        >>> study.plan().guarantee.epsilon
        1.0
        >>> tacit.Study.parse(study.to_toml()) == study
        True
    """

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """The study in a file, whose method must be a known one."""
        return cls.read(path, known_methods=METHODS)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the study file; it appears whole or not at all."""
        write_whole(Path(path), self.to_toml())
        return Path(path)

    def check(self, path: str | os.PathLike[str]) -> Inspection:
        """What does not fit in a party's own file: `found.fits`, and `found.lines()` in words."""
        return check_records(self, os.fspath(path))

    def plan(self, sizes: Mapping[str, int] | None = None, *, public: Table | None = None) -> StudyPlan:
        """What a run would promise; with each party's size, a forecast, rehearsed on made-up or `public` records."""
        return plan_of(self, sizes, public)

    def fit(self, parties: Federation | Mapping[str, Records], **settings: Any) -> Method:
        """The fitted model.

        Args:
            parties: a `Federation`, or the parties' names with their records: files, data frames or tables. These are
                all on this machine, so that it is a simulation: nothing is refused, everything is charged.
            settings: `ledger`, `policy`, `rng` as in `Federation.from_tables`.
        """
        return fit_study(self, parties, settings)

    def __repr__(self) -> str:
        """What it asks, in a line."""
        asked = "" if self.privacy is None else f", epsilon={self.privacy.epsilon:g}"
        target, features = self.schema.target.name, len(self.schema.features)
        return f"Study(name={self.name!r}, target={target!r}, n_features={features}{asked})"

    def _repr_html_(self) -> str:
        return study_html(self)


Study = RunnableStudy  # what users know by that name
