"""A server that answers every request with the same bytes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def answering(answer: Callable[[], Iterator[bytes]]) -> Iterator[str]:
    """Serve on loopback: every request is answered with the same chunks, until the client closes the connection."""

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return  # The listener is closed.
            with connection, suppress(ConnectionError):
                while connection.recv(4096):
                    for chunk in answer():
                        connection.sendall(chunk)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(30)
