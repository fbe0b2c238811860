"""The coordinator's connection, for callers that wait."""

from __future__ import annotations

from tacit.federation.net.center import RemoteCenter
from tacit.federation.net.exchange import Exchange, Post
from tacit.federation.net.headquarters import Headquarters
from tacit.federation.net.journal import Journal
from tacit.federation.net.letter import Letter
from tacit.federation.net.loop import BackgroundLoop
from tacit.federation.net.offer import Offer


class Line:
    """The coordinator's connection, for callers that wait; close it, or use it in a `with` statement."""

    def __init__(self, headquarters: Headquarters, journal: Journal | None = None) -> None:
        self.headquarters = headquarters
        self.exchange = Exchange(headquarters, journal)
        self._center: RemoteCenter | None = None
        self._loop = BackgroundLoop()
        try:
            self._loop.run(self.exchange.open())
        except BaseException:
            self.close()
            raise

    def send(self, post: Post) -> dict[str, Letter]:
        """The members' replies, from those that gave one in time."""
        return self._loop.run(self.exchange.send(post))

    def announce(self, offer: Offer) -> None:
        """Make a study, and who belongs, known to every party, now and later."""
        self._loop.run(self.exchange.introduce())
        self._loop.run(self.exchange.announce(offer.encode(), offer.digest))

    def offers(self) -> list[Offer]:
        """Every study that was announced, oldest first."""
        return [Offer.decode(letter.body) for letter in self._loop.run(self.exchange.studies())]

    def center(self) -> RemoteCenter:
        """The federation's center."""
        if self._center is None:
            nodes = self.headquarters.pinned.center
            self._center = RemoteCenter(self.send, nodes, self.headquarters.center_turn)
        return self._center

    def close(self) -> None:
        """Close the connection."""
        try:
            self._loop.run(self.exchange.close())
        finally:
            self._loop.close()

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
