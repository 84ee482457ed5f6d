"""A FastAPI application whose items are rows of a mapped table; all requests share one connection to kvref.

kvref init --store sqlite:///shop.sqlite
sqlite3 shop.sqlite < examples/shop.sql
kvref serve --store sqlite:///shop.sqlite
uvicorn --app-dir examples fastapi_items:app
curl -X PUT http://127.0.0.1:8000/items/1 --json '{"name": "pen", "price": 120}'
curl -X PATCH http://127.0.0.1:8000/items/1 --json '{"price": 130}'
curl 'http://127.0.0.1:8000/items?first=1&last=9'
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from kvref.client import AsyncMappedClient

items = AsyncMappedClient(
    os.environ.get("KVREF_ADDRESS", "127.0.0.1:11211"), mapping="shop", columns={"name": str, "price": int}
)


class Item(BaseModel):
    """A row of the table."""

    name: str
    price: int | None = None


class Changes(BaseModel):
    """Columns to change; those that are left out keep their values."""

    name: str | None = None
    price: int | None = None


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    """Close the connection when the application ends."""
    async with items:
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/items/{key}")
async def read(key: str) -> Item:
    """Return an item."""
    found = await items.get(key)
    if found is None:
        raise HTTPException(404)
    return Item(**found)


@app.get("/items")
async def read_range(first: str, last: str) -> dict[str, Item]:
    """Return the items whose keys are between two keys, in the order of the keys."""
    return {str(key): Item(**found) for key, found in (await items.get_range(ge=first, le=last)).items()}


@app.put("/items/{key}", status_code=204)
async def write(key: str, item: Item) -> None:
    """Store a whole item."""
    await items.set(key, item.model_dump())


@app.patch("/items/{key}", status_code=204)
async def change(key: str, changes: Changes) -> None:
    """Change some columns of an item and keep the others."""
    if not await items.update(key, changes.model_dump(exclude_unset=True)):
        raise HTTPException(404)
