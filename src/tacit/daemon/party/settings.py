"""`party.toml`: where a party's records lie, and what it allows. `tacit party init` writes it, its owner edits it."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tacit.data.feature import Unfit
from tacit.data.scheduler import Scheduler
from tacit.data.schema import Schema
from tacit.data.source import POSTGRES, holds_password
from tacit.data.table import Table
from tacit.errors import SettingError, StudyError
from tacit.federation.policy import Policy
from tacit.privacy.guarantee import RELATIONS, Relation
from tacit.privacy.ledger import Budget
from tacit.storage import OWNER_ONLY, write_whole
from tacit.studies.strict import Section
from tacit.studies.toml import toml_text

if TYPE_CHECKING:
    from tacit.data.inspection import Inspection

FILE = "party.toml"
LEDGER = "ledger.db"
CLUSTER_FILES = ("cluster_ca", "cluster_cert", "cluster_key")
SPILL = "spill"  # what of the records does not fit into memory, while the daemon runs

_TEMPLATE = """# What this party gives and allows. The daemon reads it again whenever it changes.

[data]
{data}

[policy]
# methods = ["averaging"]     # the methods it takes part in; absent: every one that is private
# columns = ["age", "sex"]    # the columns it lets a study use; absent: every one
min_records = 1               # the fewest records with which it answers at all
min_records_exact = 20        # the fewest with which it lets a sum without noise be opened
epsilon_per_study = 1.0       # the most that one study may cost a record, runs and all
epsilon_in_all = 3.0          # the most that all studies together may cost a record
delta = 1e-6                  # at which costs are counted; a limit is kept, with all runs together, at 4 times this
relation = "replace-one"      # under which costs are counted: replace-one, the stricter, or add-remove
not_private = []              # methods whose releases no epsilon bounds, and which it accepts nevertheless
# approvers = ["1f0c ..."]    # a study must be signed by one of these people (fingerprints); absent: by nobody
"""


@dataclass(frozen=True, kw_only=True)
class DataSource:
    """Where the records lie: a file, or a query on a database.

    Attributes:
        file: a CSV, TSV or Parquet file.
        query, database: a query, and where it is run.
        password_file, password_env: where the database's password is: in a file that its owner alone may read, or in an
            environment variable. It is nowhere else: not in `database`, not in party.toml, not on a command line.
        spill: the folder for what does not fit into memory; None: a temporary one.
        cluster: the scheduler of the party's own Dask cluster; `file` is then a path, or a pattern such as
            "/records/*.parquet", as its workers see it.
    """

    file: Path | None = None
    query: str | None = None
    database: str | None = None
    password_file: Path | None = None
    password_env: str | None = None
    spill: Path | None = None
    cluster: Scheduler | None = None

    def __post_init__(self) -> None:
        if (self.file is None) == (self.query is None):
            raise SettingError("[data] needs either file, or query with an optional database")
        if self.cluster is not None and (self.file is None or not self.file.is_absolute()):
            raise SettingError("with cluster, file must be there: a path from the root on, as the workers see it")
        if self.database is not None and holds_password(self.database):
            raise SettingError(
                "the database's address has a password in it, where others can read it; change the password, leave it "
                "out of the address, and name password_file or password_env"
            )
        n_passwords = (self.password_file is not None) + (self.password_env is not None)
        if n_passwords > 1 or (n_passwords and not (self.database or "").startswith(POSTGRES)):
            raise SettingError("give password_file or password_env, not both, and with database = 'postgres:DSN' only")

    def open(self, schema: Schema, *, unfit: Unfit = "error", person: str | None = None) -> Table:
        """The records, checked against the study's schema; what does not fit is an error, or is skipped.

        `person` is the column that says whose a record is, where the study's promise is for persons.
        """
        if self.cluster is not None and person is not None:
            raise SettingError(f"a cluster cannot weigh persons (column {person!r}); use one file, or a query")
        if self.cluster is not None:
            return Table.from_dask(str(self.file), schema, self.cluster, unfit=unfit)
        if self.file is not None:
            return Table.from_file(self.file, schema, unfit=unfit, spill=self.spill, person=person)
        assert self.query is not None
        return Table.from_query(
            self.query, schema, self.database, password=self._password(), unfit=unfit, spill=self.spill, person=person
        )

    def check_there(self) -> None:
        """Refuse a file that is not there, or that this account may not read; databases and clusters are not asked."""
        if self.file is None or self.cluster is not None:
            return
        if not self.file.is_file():
            raise SettingError(
                f"{self.file} is not there, and party.toml says that your records are; put them there, or name "
                f"another file in its [data] table"
            )
        if not os.access(self.file, os.R_OK):
            raise SettingError(f"{self.file}, which holds your records, cannot be read; check who may read it")

    def inspect(self, schema: Schema, *, person: str | None = None) -> Inspection:
        """Which records do not fit a study's schema, and where; for the owner's eyes alone."""
        from tacit.data.inspection import inspect_file, inspect_query  # with pandas, which joining does without

        if self.cluster is not None:
            raise SettingError("records on a cluster are looked at where they lie: `tacit check STUDY --data FILE`")
        if self.file is not None:
            return inspect_file(self.file, schema, person=person, spill=self.spill)
        assert self.query is not None
        return inspect_query(
            self.query, schema, self.database, password=self._password(), person=person, spill=self.spill
        )

    def _password(self) -> str | None:
        """The database's password, read anew each time; it is kept nowhere."""
        if self.password_env is not None:
            found = os.environ.get(self.password_env)
            if found is None:
                raise SettingError(f"the environment has no {self.password_env}, where party.toml says the password is")
            return found
        if self.password_file is None:
            return None
        try:
            if self.password_file.stat().st_mode & 0o077:
                raise SettingError(f"others may read {self.password_file}, which holds a password: chmod 600 it")
            return self.password_file.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingError(
                f"{self.password_file} cannot be read ({type(error).__name__}); check the path"
            ) from None

    def stamp(self) -> object:
        """Something that changes when the file does, as far as its size and time tell.

        Of a cluster, it is what the workers see now: a `DataError` if it is not there, or cannot read the files.
        """
        if self.cluster is not None:
            from tacit.data.cluster import reach

            return tuple(reach(self.cluster).find([str(self.file)]))
        if self.file is None or not self.file.exists():
            return None
        status = self.file.stat()
        return (status.st_mtime_ns, status.st_size, status.st_ino)


@dataclass(frozen=True, kw_only=True)
class PartyFile:
    """The file, read."""

    data: DataSource
    policy: Policy

    @staticmethod
    def read(folder: Path) -> PartyFile:
        """`party.toml` in `folder`; whatever is wrong with it is one line that starts with its name."""
        path = folder / FILE
        try:
            text = path.read_bytes()
        except OSError as error:
            raise SettingError(f"{path} cannot be read ({error.strerror}); run `tacit party init` first") from error
        return PartyFile.parse(text, path)

    @staticmethod
    def parse(text: bytes, path: Path) -> PartyFile:
        """What the file at `path` says, if this is its text."""
        try:
            form = tomllib.loads(text.decode("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SettingError(
                f"{path} is not TOML ({error}); texts need quotes, keys are written key = value"
            ) from None
        try:
            whole = Section(form, source=str(path), path="")
            whole.check_keys(("data", "policy"))
            whole.need("data", "say where the records lie")
            return PartyFile(data=_data(_table(form, "data"), path), policy=_policy(_table(form, "policy"), str(path)))
        except StudyError as error:
            raise SettingError(str(error)) from None


def write_party_file(folder: Path, data: DataSource) -> None:
    """Write a `party.toml` to begin with; one that is there stays."""
    path = folder / FILE
    if path.exists():
        return
    if data.file is not None:
        lines = [f"file = {toml_text(str(data.file.resolve() if data.cluster is None else data.file))}"]
        if data.cluster is not None:
            lines.append(f"cluster = {toml_text(data.cluster.address)}  # of Dask's scheduler")
            given = {key: getattr(data.cluster, key.removeprefix("cluster_")) for key in CLUSTER_FILES}
            lines += [f"{key} = {toml_text(str(Path(path).resolve()))}" for key, path in given.items() if path]
    else:
        lines = [f"query = {toml_text(data.query or '')}"]
        lines += [] if data.database is None else [f"database = {toml_text(data.database)}"]
        lines += [] if data.password_env is None else [f"password_env = {toml_text(data.password_env)}"]
        if data.password_file is not None:
            lines.append(f"password_file = {toml_text(str(data.password_file.resolve()))}")
    write_whole(path, _TEMPLATE.format(data="\n".join(lines)), mode=OWNER_ONLY)


def _table(form: Mapping[str, object], name: str) -> dict[str, object]:
    table = form.get(name, {})
    if not isinstance(table, dict):
        raise SettingError(f"{name} must be a table; write [{name}] on a line of its own")
    return table


def _data(table: dict[str, object], path: Path) -> DataSource:
    section = Section(table, source=str(path), path="data")
    section.check_keys(("file", "query", "database", "password_file", "password_env", "cluster", *CLUSTER_FILES))
    texts = {key: section.text(key, "leave the key out if there is none") for key in table}
    files = {key: path.parent / texts[key] for key in ("file", "password_file") if key in texts}
    if "file" in texts and "cluster" in texts:
        files["file"] = Path(texts["file"])  # as the workers see it
    try:
        return DataSource(
            file=files.get("file"),
            query=texts.get("query"),
            database=texts.get("database"),
            password_file=files.get("password_file"),
            password_env=texts.get("password_env"),
            spill=path.parent / SPILL,
            cluster=_cluster(texts, path),
        )
    except SettingError as error:
        raise SettingError(f"{path}: {error}") from None


def _cluster(texts: Mapping[str, str], path: Path) -> Scheduler | None:
    if "cluster" not in texts:
        if given := [key for key in CLUSTER_FILES if key in texts]:
            raise SettingError(f"{given[0]} is for a cluster; add cluster = 'tls://host:8786', or leave it out")
        return None
    files = {key.removeprefix("cluster_"): str(path.parent / texts[key]) for key in CLUSTER_FILES if key in texts}
    return Scheduler(address=texts["cluster"], **files)


def _policy(table: dict[str, object], source: str) -> Policy:
    section = Section(table, source=source, path="policy")
    section.check_keys(
        (
            "methods", "columns", "min_records", "min_records_exact", "epsilon_per_study", "epsilon_in_all", "delta",
            "relation", "not_private", "approvers",
        )
    )  # fmt: skip
    lists: dict[str, tuple[str, ...]] = {}
    for key in ("methods", "columns", "not_private", "approvers"):
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise section.error(key, "must be a list of texts; put each entry in quotes")
        if key in table:
            lists[key] = tuple(value)
    defaults = Budget()
    per_study, in_all, delta = (section.number(key) for key in ("epsilon_per_study", "epsilon_in_all", "delta"))
    try:
        budget = Budget(
            epsilon_per_study=defaults.epsilon_per_study if per_study is None else float(per_study),
            epsilon_in_all=defaults.epsilon_in_all if in_all is None else float(in_all),
            delta=defaults.delta if delta is None else float(delta),
            relation=cast(Relation, section.choice("relation", RELATIONS, defaults.relation)),
        )
        return Policy(
            methods=lists.get("methods"),
            columns=lists.get("columns"),
            min_records=section.whole("min_records", 1) or 1,
            min_records_exact=section.whole("min_records_exact", 1) or Policy.min_records_exact,
            budget=budget,
            not_private=lists.get("not_private", ()),
            approvers=lists.get("approvers"),
        )
    except SettingError as error:
        raise SettingError(f"{source}: {error}") from None
