"""Why the message server cannot be reached, in words that say what to do."""

from __future__ import annotations

import ssl

from nats.errors import AuthorizationError, Error

from tacit.errors import RunError


def unreachable(url: str, error: BaseException) -> RunError:
    """The error to raise where the connection to `url` failed with `error`."""
    match error:
        case Error() if isinstance(error, AuthorizationError) or "uthorization" in str(error):
            why = "does not know this key: it was revoked, or the invitation was used or has expired"
            return RunError(f"the message server at {url} {why}; ask the coordinator for a new invitation")
        case ssl.SSLCertVerificationError():
            what = error.verify_message or "not trusted"
            return RunError(
                f"the certificate of the server at {url} is refused ({what}); if it has expired, the coordinator "
                f"renews it with `tacit coordinator renew`; if it is foreign, this is not your federation's server"
            )
        case _:
            what = str(error) or type(error).__name__
            return RunError(
                f"the message server at {url} cannot be reached ({what}); "
                f"is `tacit coordinator serve` running, and is the address right?"
            )
