"""Who may see and do what with studies at the coordinator's site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.requests import Request

from tacit.daemon.coordinator.study_store import PUBLIC_STATES, STATES, State, StudyStore, StudyVersion
from tacit.web.account import Account
from tacit.web.form import NeedsLogIn, visit_of

if TYPE_CHECKING:
    from tacit.web.coordinator.forecaster import Forecaster
    from tacit.web.coordinator.operations import StudyOperations


def may_see(account: Account | None, version: StudyVersion, *, is_public: bool) -> bool:
    """Whether somebody may know that this version exists.

    What is published is seen by members, and by everybody where the site is public. What is not yet published is seen
    by its author and by those who approve.
    """
    if version.state in PUBLIC_STATES:
        return is_public or account is not None
    return account is not None and (account.name == version.author or account.may("approver"))


def may_change(account: Account | None, version: StudyVersion) -> bool:
    """Whether somebody may change a draft, or make the next version: its author, and administrators."""
    return account is not None and account.may("researcher") and (
        account.name == version.author or account.may("administrator")
    )  # fmt: skip


def may_approve(account: Account | None, version: StudyVersion) -> bool:
    """Whether somebody may approve a version: an approver who is not its author."""
    return account is not None and account.may("approver") and account.name != version.author


def seen_version(request: Request, study: str, number: int | None = None) -> StudyVersion:
    """A version that the visitor may see, the latest such by default; 404 for any other, as if there were none."""
    found = desk_of(request).find_seen(visit_of(request).account, study, number)
    if found is None:
        raise HTTPException(404)
    return found


def check_member(request: Request) -> Account | None:
    """A dependency: whoever may look at the catalogue; on a site for members, who has logged in."""
    account = visit_of(request).account
    if account is None and not desk_of(request).is_public:
        raise NeedsLogIn
    return account


class Desk:
    """What the coordinator's pages share besides their site.

    Attributes:
        studies: the studies.
        is_public: whether everybody may read what is published.
        forecaster: what forecasts drafts; None where nothing is forecast.
        operations: what announces and runs studies; None where there is no federation.
    """

    def __init__(
        self,
        studies: StudyStore,
        *,
        is_public: bool,
        forecaster: Forecaster | None = None,
        operations: StudyOperations | None = None,
    ) -> None:
        self.studies = studies
        self.is_public = is_public
        self.forecaster = forecaster
        self.operations = operations

    def find_seen(self, account: Account | None, study: str, number: int | None = None) -> StudyVersion | None:
        """A version that the account may see, the latest such by default; None for any other."""
        for version in self.studies.versions(study):
            if number in (None, version.number) and may_see(account, version, is_public=self.is_public):
                return version
        return None

    def seen_studies(
        self, account: Account | None, states: tuple[State, ...] = STATES, search: str = ""
    ) -> list[StudyVersion]:
        """The latest version of each study that the account may see, of those in one of the states with all words."""
        latest: dict[str, StudyVersion] = {}
        for version in self.studies.all(states, search):
            known = latest.get(version.study)
            if may_see(account, version, is_public=self.is_public) and (known is None or known.number < version.number):
                latest[version.study] = version
        return list(latest.values())


def desk_of(request: Request) -> Desk:
    """The desk of the site that a request is to."""
    desk: Desk = request.app.state.desk
    return desk
