"""What can go wrong, and whose it is to mend.

    TacitError
    |-- UserError               the input is wrong: exit status 2, nothing was spent
    |   |-- SchemaError         a study's public facts contradict themselves; a ValueError too
    |   |-- DataError           a table does not fit its schema; a ValueError too
    |   |-- StudyError          a study file that cannot be read as one
    |   |-- SettingError        a setting or an argument that cannot be honoured; a ValueError too
    |   |-- NotFittedError      a model was asked before it was fitted; in methods.method, for it is scikit-learn's too
    |   `-- Refused             a party's guard said no
    |       |-- PolicyRefusal   the party's policy does not allow the question
    |       |   `-- OptedOut    the party's owner left the study, or the time of its consent is over
    |       |-- NotAgreed       the question does not follow from what the party's owner agreed to
    |       `-- BudgetExceeded  the answer would cost more than the party allows
    `-- RunError                the run failed: exit status 1
        |-- QuorumLost          too few parties answered
        |-- NotConverged        no certified optimum within the iterations allowed
        |-- SingularCurvature   the optimum is not unique: features are collinear
        |-- WireError           a message that is not one of ours
        |-- CenterError         shares that do not open to what was declared
        |   `-- AddendRefused   shares that are not what was declared, or what no honest party sends; names who
        `-- LogTampered         a party's log does not match its own hashes

Every message names the thing, its value and the way out. No message contains or depends on a record, but for the
counts that a `DataError` tells a party about its own file.
"""

from __future__ import annotations

from collections.abc import Mapping


class TacitError(Exception):
    """Every error that Tacit raises on purpose.

    Example:
        >>> import tacit
        >>> try:
        ...     tacit.Numeric("age", 90, 20)
        ... except tacit.TacitError as error:
        ...     print(error)
        feature 'age': low=90.0 must be below high=20.0, by a finite distance
    """


class UserError(TacitError):
    """The input is wrong and nothing was spent."""


class SchemaError(UserError, ValueError):
    """A study's public facts contradict themselves."""


class DataError(UserError, ValueError):
    """A table does not fit its schema."""


class StudyError(UserError):
    """A study file that cannot be read as one."""


class SettingError(UserError, ValueError):
    """A setting or an argument that cannot be honoured."""


class Refused(UserError):
    """A party's guard said no.

    Attributes:
        account: the account whose ledger says so; empty if it is somebody else who does.
    """

    def __init__(self, *why: object, account: str = "") -> None:
        super().__init__(*why)
        self.account = account


class PolicyRefusal(Refused):
    """The party's policy does not allow the question."""


class OptedOut(PolicyRefusal):
    """The party's owner left the study, or the time is over for which it consented: no use to wait for it."""


class NotAgreed(Refused):
    """The question does not follow from what the party's owner agreed to; says nothing of the table."""


class BudgetExceeded(Refused):
    """The answer would cost more than the party allows."""


class RunError(TacitError):
    """The run failed."""


class QuorumLost(RunError):
    """Too few parties answered."""


class NotConverged(RunError):
    """No certified optimum was found within the iterations allowed."""


class SingularCurvature(RunError):
    """The optimum is not unique because features are collinear."""


class WireError(RunError):
    """A message that is not one of ours."""


class CenterError(RunError):
    """Shares that do not open to what was declared."""


class AddendRefused(CenterError):
    """Parties sent shares that are not what they declared, or what no honest party sends.

    Attributes:
        parties: their names, and what is wrong with each.
    """

    def __init__(self, parties: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"party {name!r}: {why}" for name, why in parties.items()))
        self.parties = dict(parties)


class LogTampered(RunError):
    """A party's log does not match its own hashes."""
