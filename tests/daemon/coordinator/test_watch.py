"""The coordinator's watch over what each key sends."""

from __future__ import annotations

import json

import pytest

from tacit.daemon.coordinator.watch import Allowance, Pace, Sent, Watch, read_connections
from tacit.errors import WireError

MAY = Allowance(messages=100.0, bytes=1e6, burst_seconds=5.0, connections=3)


def sent(
    messages: int, n_bytes: int = 0, *, id_: int = 1, nkey: str = "U", is_open: bool = True, server: str = "S"
) -> Sent:
    return Sent(id=(server, id_), nkey=nkey, messages=messages, bytes=n_bytes, is_open=is_open)


def test_who_keeps_to_the_allowance_is_never_named_and_a_burst_is_allowed() -> None:
    watch = Watch(MAY)
    assert watch.over([sent(500)], 0.0) == {}
    for second in range(1, 1000):
        assert watch.over([sent(500 + 100 * second, 10**6 * second)], float(second)) == {}


def test_who_sends_more_is_named_and_nobody_else() -> None:
    watch = Watch(MAY)
    named = {}
    for second in range(10):
        honest = sent(50 * second, id_=2, nkey="H")
        named = dict(watch.over([sent(300 * second), honest], float(second)))
        if named:
            break
    assert named == {"U": "more than 100 messages a second"}
    assert Watch(MAY).over([sent(1, 6 * 10**6)], 0.0) == {"U": "more than 1,000,000 bytes a second"}


def test_a_server_of_a_cluster_that_is_silent_for_a_while_makes_nobody_guilty() -> None:
    watch = Watch(MAY)
    assert watch.over([sent(400), sent(400, server="T", nkey="H")], 0.0) == {}
    for second in range(1, 60):
        assert watch.over([sent(400)], float(second)) == {}  # T says nothing
    assert watch.over([sent(400), sent(450, server="T", nkey="H")], 60.0) == {}
    assert watch.over([sent(400), sent(1000, server="T", nkey="H")], 61.0) == {"H": "more than 100 messages a second"}
    for second in range(62, 500):
        watch.over([sent(400)], float(second))
    assert {server for server, _ in watch._sent} == {"S"}  # what is gone is forgotten


def test_many_short_connections_count_as_one_long_one() -> None:
    watch, named = Watch(MAY), {}
    for second in range(10):
        closed = [sent(60, id_=100 * second + number, is_open=False) for number in range(4)]
        named = dict(watch.over(closed, float(second)))
        if named:
            break
    assert named == {"U": "more than 100 messages a second"}
    assert Watch(MAY).over([sent(0, id_=i) for i in range(4)], 0.0) == {"U": "more than 3 connections"}
    assert Watch(MAY).over([sent(0, id_=i, is_open=False) for i in range(4)], 0.0) == {}


def test_a_sender_is_looked_at_no_faster_than_its_pace() -> None:
    pace = Pace(per_second=10, burst=50)
    assert sum(pace.allows("a", 0.0) for _ in range(1000)) == 50
    assert pace.allows("b", 0.0)
    assert sum(pace.allows("a", 1.0) for _ in range(1000)) == 10


def test_the_servers_list_is_read_strictly() -> None:
    one = {"cid": 1, "authorized_user": "U", "in_msgs": 2, "in_bytes": 3}
    told = {"server": {"id": "S"}, "data": {"connections": [one, {**one, "cid": 2, "stop": "now"}, {"cid": 3}]}}
    assert read_connections(json.dumps(told).encode()) == [sent(2, 3), sent(2, 3, id_=2, is_open=False)]
    assert read_connections(b'{"data": {}}') == []
    for bad in (b"", b"[]", b"{}", b'{"data": {"connections": [{"authorized_user": "U"}]}}'):
        with pytest.raises(WireError, match="does not list its connections"):
            read_connections(bad)


def test_a_pace_forgets_names_that_are_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.daemon.coordinator.watch._MOST_SENDERS", 100)
    pace = Pace()
    for number in range(1000):
        assert pace.allows(f"{number}", 0.0)
    assert len(pace._levels) == 100
