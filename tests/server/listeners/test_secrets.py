"""Passwords are not in what a traceback or a log would show of the objects that hold them."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kvref import profiles
from kvref.addresses import Address
from kvref.cli.serve import MAX_LISTENERS, listeners
from kvref.client.protocol import handshake
from kvref.engine.counters import Counters
from kvref.errors import ConfigError
from kvref.protocol.rules import wire_rules
from kvref.server.client_warnings import ClientWarnings
from kvref.server.listeners.authentication import Authenticator
from kvref.server.listeners.listener import Listener
from kvref.storage.mysql.login import PASSWORD, parse


def test_nothing_shows_a_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    (tmp_path / "auth").write_text("alice:hidden word\n")
    monkeypatch.setenv(PASSWORD, "hidden word")
    listener = Listener(Address("127.0.0.1", 0), auth_file=tmp_path / "auth")
    assert listener.users is not None
    gate = Authenticator(
        listener.users, "1.6.0", ClientWarnings(Counters()), wire_rules(profiles.load("kvref"), 1 << 20)
    )
    gate.feed(b"set x 0 0 9\r\nalice hid")
    reply = handshake(("alice", "hidden word"))
    login = parse("mysql://alice@db.example/")
    assert (login.password, reply.password) == ("hidden word", "hidden word")
    for each in (listener, listener.users, gate, reply, login):
        assert "hid" not in repr(each), each
        assert "hid" not in f"{each}", each
    assert "hid" not in caplog.text


def test_more_listeners_than_can_be_distinguished(tmp_path: Path) -> None:
    file = tmp_path / "kvref.toml"
    file.write_text('[[listener]]\naddress = "127.0.0.1:0"\n' * (MAX_LISTENERS + 1))
    with pytest.raises(ConfigError, match="257 listeners: one server supports at most 256"):
        listeners({}, file, [])
    file.write_text('[[listener]]\naddress = "127.0.0.1:0"\n' * MAX_LISTENERS)
    assert len(listeners({}, file, [])) == MAX_LISTENERS
