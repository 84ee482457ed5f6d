"""TLS of a listener: real clients with real certificates, one process and two workers."""

from __future__ import annotations

import re
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.commands import refusal
from helpers.serving import Served, ask, serving
from pymemcache.client.base import Client
from server.listeners.talk import ENDED, answers, authority, frame, held, trusting

pytestmark = pytest.mark.live

Files = tuple[Path, Path]
USER = b"set x 0 0 12\r\nalice secret\r\n"
ROW = b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return authority(tmp_path_factory.mktemp("own"))


@pytest.fixture(scope="module", params=["1", "2"])
def secured(request: pytest.FixtureRequest, own: Files, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("secured")
    (folder / "auth").write_text("alice:secret\n")
    options = ["--tls-cert", str(own[0]), "--tls-key", str(own[1]), "--auth-file", str(folder / "auth")]
    with serving(folder / "x.sqlite", *options, "--workers", request.param) as served:
        yield served


def settings(reply: bytes) -> dict[str, str]:
    return dict(re.findall(r"STAT (\S+) (.*)\r\n", reply.decode()))


def test_both_protocols(secured: Served, own: Files) -> None:
    tls = trusting(own[0])
    assert answers(secured.port, [b"get AA\r\n", USER, b"get AA\r\n"], tls) == [
        b"CLIENT_ERROR unauthenticated\r\n", b"STORED\r\n", ROW,
    ]  # fmt: skip
    shown = settings(answers(secured.port, [USER, b"stats settings\r\n"], tls)[1])
    assert (shown["tcpport"], shown["inter"]) == (str(secured.port), "127.0.0.1")
    assert shown["auth_enabled_ascii"].endswith("/auth")
    received = answers(secured.port, [frame(0x21, b"PLAIN", b"\0alice\0secret"), frame(0x00, b"AA")], tls)
    assert received[1].endswith(b"HELLO, HELLO")


def test_large_values_and_pipelines(secured: Served, own: Files) -> None:
    value = b"0123456789" * 90
    with (
        secured.connect() as plain,
        trusting(own[0]).wrap_socket(plain, server_hostname="localhost") as client,
    ):
        client.sendall(USER)
        assert client.recv(100) == b"STORED\r\n"
        stores = b"".join(b"set t%d 0 0 900\r\n%s\r\n" % (number, value) for number in range(200))
        assert ask(client, stores) == b"STORED\r\n" * 200
        found = ask(client, b"get " + b" ".join(b"t%d" % number for number in range(200)) + b"\r\n")
        assert found.count(value) == 200
        client.sendall(b"get AA\r\nquit\r\n")
        assert client.recv(100) == ROW
        client.unwrap().close()


def test_the_end_of_tls_is_no_matter_for_the_log(secured: Served, own: Files) -> None:
    for _ in range(2):
        with secured.connect() as plain, trusting(own[0]).wrap_socket(plain, server_hostname="localhost") as client:
            client.sendall(USER)
            assert client.recv(100) == b"STORED\r\n"
            client.unwrap().close()
    assert answers(secured.port, [USER], trusting(own[0])) == [b"STORED\r\n"]
    assert "eof_received" not in "".join(secured.log)


def test_pymemcache(secured: Served, own: Files) -> None:
    client = Client(("localhost", secured.port), tls_context=trusting(own[0]), timeout=10)
    try:
        client.set(b"anything", b"alice secret", noreply=False)
        assert client.get(b"AA") == b"HELLO, HELLO"
    finally:
        client.close()


def test_a_client_without_tls(secured: Served, own: Files) -> None:
    assert b"STORED" not in b"".join(held(secured.port, [USER]))
    assert answers(secured.port, [USER, b"get AA\r\n"], trusting(own[0]))[1] == ROW


def test_an_old_protocol(secured: Served, own: Files) -> None:
    old = trusting(own[0])
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError):
        held(secured.port, [USER], old)


def test_the_oldest_protocol(secured: Served, own: Files) -> None:
    oldest = trusting(own[0])
    oldest.maximum_version = ssl.TLSVersion.TLSv1_2
    assert answers(secured.port, [USER, b"get AA\r\n"], oldest)[1] == ROW


def test_client_certificates(tmp_path: Path, own: Files) -> None:
    theirs, strange = authority(tmp_path, "client"), authority(tmp_path, "stranger")
    options = ["--tls-cert", str(own[0]), "--tls-key", str(own[1]), "--tls-client-ca", str(theirs[0])]
    with serving(tmp_path / "x.sqlite", *options) as served:
        served.wait_for("(TLS; client certificates)")
        received = answers(
            served.port, [b"get AA\r\n", b"refresh_certs\r\n", b"stats settings\r\n"], trusting(own[0], theirs)
        )
        assert received[:2] == [ROW, b"CLIENT_ERROR refresh_certs not allowed: SIGHUP reads certificates again\r\n"]
        assert {name: value for name, value in settings(received[2]).items() if name.startswith("ssl_")} == {
            "ssl_enabled": "yes", "ssl_chain_cert": str(own[0]), "ssl_key": str(own[1]), "ssl_verify_mode": "3",
            "ssl_keyformat": "1", "ssl_ciphers": "NULL", "ssl_ca_cert": str(theirs[0]), "ssl_session_cache": "no",
            "ssl_kernel_tls": "no", "ssl_min_version": "tlsv1.2",
        }  # fmt: skip
        for shown in (None, strange):
            try:
                received = held(served.port, [b"get AA\r\n"], trusting(own[0], shown))
            except (ssl.SSLError, ConnectionError):
                received = [ENDED]  # TLS 1.3 reports it with the first reply, or the connection is closed by then
            assert received == [ENDED]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_new_certificate_at_a_reload(tmp_path: Path, workers: str) -> None:
    old, new = authority(tmp_path, "localhost"), authority(tmp_path, "later")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"

    def install(files: Files) -> None:
        cert.write_bytes(files[0].read_bytes())
        key.write_bytes(files[1].read_bytes())

    install(old)
    with serving(tmp_path / "x.sqlite", "--tls-cert", str(cert), "--tls-key", str(key), "--workers", workers) as served:
        assert answers(served.port, [b"get AA\r\n"], trusting(old[0])) == [ROW]
        key.write_bytes(new[1].read_bytes())
        served.reload()
        served.wait_for("not reloaded, the previous one stays active: tls_cert=")
        assert answers(served.port, [b"get AA\r\n"], trusting(old[0])) == [ROW]
        install(new)
        served.reload()
        assert ssl.get_server_certificate(("127.0.0.1", served.port)) == new[0].read_text()


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory, own: Files) -> dict[str, Path]:
    """Return the files that refused options name."""
    folder = tmp_path_factory.mktemp("refused")
    other = authority(folder, "other")
    (folder / "text").write_text("a secret line\n")
    (folder / "empty").write_text("\n")
    (folder / "twice").write_text("a:secret\na:secret\n")
    (folder / "listeners").write_text('[[listener]]\naddress = "127.0.0.1:0"\n')
    (folder / "unknown").write_text('[[listener]]\nadress = "127.0.0.1:0"\n')
    (folder / "kind").write_text('[[listener]]\naddress = "127.0.0.1:0"\nread_only = "yes"\n')
    (folder / "nowhere").write_text("[[listener]]\nread_only = true\n")
    (folder / "nothing").write_text('[[listener]]\naddress = "127.0.0.1:0"\nmappings = []\n')
    (folder / "number").write_text('[[listener]]\naddress = "127.0.0.1:0"\nmappings = 5\n')
    (folder / "reads").write_text('[[listener]]\naddress = "127.0.0.1:0"\nreads = "fast"\n')
    locked = folder / "locked"
    lock = ["openssl", "ec", "-aes128", "-passout", "pass:secret", "-in", str(own[1]), "-out", str(locked)]
    subprocess.run(lock, check=True, capture_output=True)
    return {path.name: path for path in folder.iterdir()} | {"cert": own[0], "key": own[1], "other": other[1]}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--tls-cert", "{cert}", "--tls-key", "{other}"], "key values mismatch: name PEM files that match"),
        (["--tls-cert", "no.pem"], "tls_cert=no.pem: No such file or directory"),
        (["--tls-cert", "{text}"], "no such PEM block: name PEM files that match"),
        (["--tls-key", "{key}"], "tls_key or tls_client_ca without tls_cert"),
        (["--tls-cert", "{cert}", "--tls-key", "{key}", "--tls-client-ca", "{text}"], "tls_client_ca="),
        (["--tls-cert", "{cert}", "--tls-key", "{locked}"], "the key is encrypted with a passphrase"),
        (["--auth-file", "no"], "auth_file 'no': No such file or directory"),
        (["--auth-file", "{text}"], "line 1: write user:password"),
        (["--auth-file", "{empty}"], "no users: write user:password lines"),
        (["--auth-file", "{twice}"], "line 2: duplicate user"),
        (["--listen", "0.0.0.0:0"], "address 0.0.0.0:0: reachable from other hosts without authentication"),
        (["--listen", "*:0"], "address *:0: reachable from other hosts"),
        (["--listen", "[::]:0"], "address [::]:0: reachable from other hosts"),
        (["--listen", "0.0.0.0:0", "--tls-cert", "{cert}", "--tls-key", "{key}"], "reachable from other hosts"),
        (
            ["--config", "{listeners}", "--read-only"],
            "has [[listener]]: configure listeners either there or by options",
        ),
        (
            ["--config", "{unknown}"],
            "listener: unknown key 'adress', did you mean 'address': choose one of address, socket_mode, socket_owner, auth_file",
        ),
        (["--config", "{kind}"], "listener: read_only = 'yes': write true or false"),
        (["--config", "{nowhere}"], 'listener without an address: write address = "HOST:PORT"'),
        (["--config", "{nothing}"], "listener: mappings = []: write names of containers"),
        (["--config", "{number}"], "listener: mappings = 5: write names of containers"),
        (["--config", "{reads}"], "listener: reads = 'fast': write one of primary, replica, session"),
    ],
)
def test_what_is_refused(options: list[str], text: str, tmp_path: Path, places: dict[str, Path]) -> None:
    arguments = [each.format_map(places) for each in options]
    result = refusal("serve", *arguments, "--create", "--store", f"sqlite:///{tmp_path}/x.sqlite")
    assert result.returncode == 2
    assert text in result.stderr
    assert "Traceback" not in result.stderr
    assert "secret" not in result.stderr
    assert not (tmp_path / "x.sqlite").exists()


@pytest.mark.parametrize("options", [["--open"], ["--auth-file", "{auth}"]])
def test_what_is_opened_on_purpose(options: list[str], tmp_path: Path) -> None:
    (tmp_path / "auth").write_text("alice:secret\n")
    arguments = [each.format(auth=tmp_path / "auth") for each in options]
    with serving(tmp_path / "x.sqlite", *arguments, listen="0.0.0.0:0") as served:
        assert (b"HELLO" in held(served.port, [b"get AA\r\n"])[0]) == (options == ["--open"])
        assert ("passwords cross the network in clear text: configure tls_cert" in "".join(served.log)) != (
            options == ["--open"]
        )
