"""A study in code: checked, planned and run, as `tacit check`, `tacit plan` and `tacit fit` do it with its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pandas as pd

from tacit.data.inspection import Inspection, inspect_file
from tacit.data.table import Table
from tacit.errors import SettingError
from tacit.federation.federation import Federation
from tacit.federation.policy import Policy
from tacit.federation.split import check_files
from tacit.methods import Method
from tacit.privacy.guarantee import Guarantee
from tacit.report.plain import printable
from tacit.report.verdict import forecast_words
from tacit.studies.forecast import Outlook, outlook_of
from tacit.studies.looking import fit_in_looks
from tacit.studies.rehearsal import Rehearsal
from tacit.studies.result import named_after
from tacit.studies.run import method_of
from tacit.studies.study import Study

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

    study: Study
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


def check_records(study: Study, path: str | Path) -> Inspection:
    """What does not fit the study in a party's own file: line, column and value."""
    return inspect_file(Path(path), study.schema, person=study.person)


def plan_of(study: Study, sizes: Mapping[str, int] | None, public: Table | None) -> StudyPlan:
    """What the study would promise; with the parties' `sizes`, what to expect of it, rehearsed."""
    method = method_of(study)
    guarantee = method.guarantee
    outlook = None
    if sizes is not None:
        outlook = outlook_of(Rehearsal(study=study, sizes=dict(sizes), public=public), [])
    return StudyPlan(study=study, method=method, guarantee=guarantee, outlook=outlook)


def fit_study(study: Study, parties: Federation | Mapping[str, Records], settings: Mapping[str, object]) -> Method:
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


def tables_of(study: Study, parties: Mapping[str, Records]) -> dict[str, Table]:
    """Each party's records as a table of the study."""
    if not isinstance(parties, Mapping) or not parties:
        raise SettingError(
            f"parties is a {type(parties).__name__}; give a Federation, or names with files or data frames, such as "
            '{"north": "north.csv", "south": "south.csv"}'
        )
    check_files({name: data for name, data in parties.items() if isinstance(data, str | Path)})
    return {name: _table(study, name, data) for name, data in parties.items()}


def _table(study: Study, name: str, data: Records) -> Table:
    if isinstance(data, Table):
        return data
    if isinstance(data, pd.DataFrame):
        return Table.from_frame(data, study.schema, name=name, person=study.person)
    if isinstance(data, str | Path):
        return Table.from_file(data, study.schema, person=study.person)
    raise SettingError(f"party {name!r} has a {type(data).__name__}; give a file's path, a data frame or a Table")
