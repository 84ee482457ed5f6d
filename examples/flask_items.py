"""A Flask application whose items are rows of a mapped table; docs/how-to/flask.md runs it."""

from __future__ import annotations

import os
from typing import Any

from flask import Flask, Response, abort, jsonify, request

from kvref.client import CallError, MappedClient

app = Flask(__name__)
# Threads of the server share the connections of the pool.
items = MappedClient(
    os.environ.get("KVREF_ADDRESS", "127.0.0.1:11211"),
    mapping="shop",
    columns={"name": str, "price": int},
    pool_size=8,
)


@app.errorhandler(CallError)
def refused(error: CallError) -> tuple[Response, int]:
    """Return a value that has not all columns, or no place in them, as the error of the caller."""
    return jsonify(error=str(error)), 400


@app.get("/items/<key>")
def read(key: str) -> Any:
    """Return an item."""
    return items.get(key) or abort(404)


@app.put("/items/<key>")
def write(key: str) -> Any:
    """Store a whole item."""
    items.set(key, request.get_json())
    return "", 204


@app.patch("/items/<key>")
def change(key: str) -> Any:
    """Change some columns of an item and keep the others."""
    if not items.update(key, request.get_json()):
        abort(404)
    return "", 204


@app.delete("/items/<key>")
def remove(key: str) -> Any:
    """Delete an item."""
    if not items.delete(key):
        abort(404)
    return "", 204
