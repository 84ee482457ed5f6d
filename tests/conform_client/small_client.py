"""A small client of the text protocol as an adapter: correct, or with the one defect that its first argument names."""

from __future__ import annotations

import json
import re
import select
import socket
import ssl
import sys

BUG = sys.argv[1]
TIMEOUT = float(sys.argv[4])
ROW = re.compile(rb"VALUE (\S+) (\d{1,10}) (\d{1,9})(?: (\d+))?\r\n")


class Client:
    def __init__(self, host: str, port: int, options: dict = {}) -> None:  # noqa: B006 - it is not changed
        self.address = (host, port)
        self.credentials = options.get("credentials")
        self.tls = ssl.create_default_context(cafile=options["ca"]) if "ca" in options else None
        if self.tls is not None and BUG in {"any certificate", "any host"}:
            self.tls.check_hostname = False
            self.tls.verify_mode = ssl.CERT_NONE if BUG == "any certificate" else ssl.CERT_REQUIRED
        self.sock: socket.socket | None = None
        self.buffer = b""

    def connection(self) -> socket.socket:
        if (
            self.sock is not None
            and BUG not in {"reads stray bytes", "any line is a miss", "never connects again"}
            and self.has_stray()
        ):
            self.drop()
        if self.sock is None:
            self.sock = socket.create_connection(self.address, timeout=None if BUG == "no timeout" else TIMEOUT)
            if self.tls is not None:
                self.sock = self.tls.wrap_socket(self.sock, server_hostname=self.address[0])
            if self.credentials is not None:
                self.authenticate()
        return self.sock

    def has_stray(self) -> bool:
        assert self.sock is not None
        if not select.select([self.sock], [], [], 0)[0]:
            return False
        if self.tls is None or BUG == "no stray bytes within TLS":
            return self.tls is None
        self.sock.settimeout(0)
        try:
            return self.sock.recv(1) is not None
        except ssl.SSLWantReadError:
            return False
        finally:
            self.sock.settimeout(TIMEOUT)

    def authenticate(self) -> None:
        assert self.sock is not None
        token = " ".join(self.credentials).encode()
        self.sock.sendall(b"set auth 0 0 %d\r\n%s\r\n" % (len(token), token))
        line = self.line()
        if BUG == "authenticates once":
            self.credentials = None
        if BUG == "any reply to credentials" and line.startswith(b"NOT"):
            return
        if line != b"STORED" or self.buffer:
            raise ValueError(f"{self.credentials if BUG == 'password in errors' else ''} {line!r}")

    def drop(self) -> None:
        if self.sock is not None:
            self.sock.close()
        self.sock, self.buffer = None, b""

    def receive(self) -> None:
        assert self.sock is not None
        data = self.sock.recv(65536)
        if not data:
            if BUG == "end is a line end" and self.buffer and not self.buffer.endswith(b"\n"):
                self.buffer += b"\r\n"
                return
            raise ConnectionError("closed")
        self.buffer += data
        if BUG == "one receive":
            self.buffer = self.buffer if self.buffer.endswith(b"\r\n") else self.buffer + b"\r\n"

    def line(self) -> bytes:
        while b"\r\n" not in self.buffer:
            self.receive()
        line, _, self.buffer = self.buffer.partition(b"\r\n")
        return line

    def ask(self, request: bytes, read):
        for attempt in (1, 2):
            try:
                self.connection().sendall(request)
                result = read()
                if self.buffer and BUG not in {"reads stray bytes", "any line is a miss"}:
                    self.drop()
            except TimeoutError:
                if BUG != "keeps a late connection":
                    self.drop()
                raise
            except Exception as error:
                if BUG != "never connects again":
                    self.drop()
                if BUG == "repeats" and attempt == 1 and isinstance(error, OSError):
                    continue
                if BUG == "errors are misses":
                    return None
                raise
            return result
        return None

    def key(self, key: str) -> bytes:
        raw = key.encode()
        if BUG != "any key" and (not 0 < len(raw) <= 250 or re.search(rb"[\0-\x20\x7f]", raw)):
            raise ValueError("key")
        return raw[:250] if BUG == "cuts keys" else raw

    def rows(self, verb: bytes, keys: list[str]) -> dict[str, tuple[str, int]]:
        names = [self.key(key) for key in keys]

        def read():
            found: dict[str, tuple[str, int]] = {}
            while True:
                line = self.line()
                if line == b"END" or (BUG == "any line is a miss" and not line.startswith(b"VALUE")):
                    return found
                head = ROW.fullmatch(line + b"\r\n")
                if head is None:
                    raise ValueError(line[:50])
                size = int(head[3])
                while len(self.buffer) < size + 2:
                    self.receive()
                value, end, self.buffer = self.buffer[:size], self.buffer[size : size + 2], self.buffer[size + 2 :]
                if BUG == "trusts lengths":
                    if end != b"\r\n":
                        self.line()
                elif end != b"\r\n":
                    raise ValueError("length")
                name = names[len(found)] if BUG == "rows by position" else head[1]
                if BUG == "any row":
                    name = names[0]
                if name not in names:
                    raise ValueError(name)
                if BUG == "values are lines":
                    value = value.partition(b"\r\n")[0]
                number = int(head[4] or 0)
                found[keys[names.index(name)]] = (value.decode(), number & 0xFFFFFFFF if BUG == "short cas" else number)

        return self.ask(verb + b" " + b" ".join(names) + b"\r\n", read) or {}

    def get(self, key):
        return self.rows(b"get", [key]).get(key, (None,))[0]

    def gets(self, key):
        return self.rows(b"gets", [key]).get(key)

    def get_multi(self, keys):
        return {key: value for key, (value, _) in self.rows(b"get", keys).items()}

    def words(self, request: bytes, true: bytes, *false: bytes) -> bool:
        def read() -> bool:
            line = self.line()
            if line == true or (BUG == "any word" and line not in false):
                return True
            if line in false:
                return False
            raise ValueError(line[:50])

        return self.ask(request, read)

    def store(self, verb: bytes, key: str, value: str, cas: bytes = b""):
        data = value.encode()
        request = b"%s %s 0 0 %d%s\r\n%s\r\n" % (verb, self.key(key), len(data), cas, data)
        return self.words(request, b"STORED", b"NOT_STORED", b"NOT_FOUND", b"EXISTS")

    def set_noreply(self, key, value):
        data = value.encode()
        self.connection().sendall(b"set %s 0 0 %d noreply\r\n%s\r\n" % (self.key(key), len(data), data))
        return True

    def set(self, key, value):
        if BUG == "cuts keys" and len(key) > 250:
            key = key[:250]
        data = value.encode()
        request = b"set %s 0 0 %d\r\n%s\r\n" % (self.key(key), len(data), data)
        return self.words(request, b"STORED")

    def cas(self, key, value, number):
        return self.store(b"cas", key, value, b" %d" % number)

    def delete(self, key):
        return self.words(b"delete %s\r\n" % self.key(key), b"DELETED", b"NOT_FOUND")

    def touch(self, key, ttl):
        return self.words(b"touch %s %d\r\n" % (self.key(key), ttl), b"TOUCHED", b"NOT_FOUND")

    def gat(self, key, ttl):
        return self.rows(b"gat %d" % ttl, [key]).get(key, (None,))[0]

    def count(self, verb: bytes, key: str, by: int):
        def read():
            line = self.line()
            if line == b"NOT_FOUND":
                return None
            found = re.match(rb"\d+", line) if BUG == "leading digits" else re.fullmatch(rb"(\d+) *", line)
            if found is None:
                raise ValueError(line[:50])
            return int(found[0])

        return self.ask(b"%s %s %d\r\n" % (verb, self.key(key), by), read)


def main() -> None:
    print(json.dumps({"client": "small", "version": "1", "runtime": "Python"}), flush=True)
    client = None
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        try:
            if name == "connect":
                client = Client(*arguments)
                returned = True
            elif name in {"add", "replace", "append", "prepend"}:
                returned = client.store(name.encode(), *arguments)
            elif name in {"incr", "decr"}:
                returned = client.count(name.encode(), *arguments)
            else:
                returned = getattr(client, name)(*arguments)
        except Exception as error:
            print(json.dumps({"raised": repr(error)}), flush=True)
        else:
            print(json.dumps({"returned": returned}), flush=True)


main()
