"""What memcached's protocol says each command answers: items as a dict, answers as templates."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from kvref_conformance.stateful.arguments.commands import STORES
from kvref_conformance.template import CAS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kvref_conformance.stateful.arguments.commands import Command

TWO_64: Final = 1 << 64
THIRTY_DAYS: Final = 2592000
# Any date of this century but the past of these decades.
FAR_FUTURE: Final = (1 << 31) - 1
NOT_A_NUMBER: Final = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
NO_AMOUNT: Final = "CLIENT_ERROR invalid numeric delta argument\r\n"
NEVER_A_NUMBER: Final = TWO_64 - 1


@dataclass(slots=True)
class Item:
    """An item, and its cas number once `gets` has shown it."""

    value: str
    flags: int
    number: int | None = None


@dataclass(slots=True)
class Store:
    """The items of one endpoint, as far as one conversation made them.

    Args:
        keys: their names, by number.
    """

    keys: Sequence[str]
    items: dict[str, Item] = field(default_factory=dict)
    past: dict[str, list[int]] = field(default_factory=dict)

    def line(self, command: Command) -> str:
        """Return the bytes of a command, each a character."""
        verb, key, tail = command.verb, self.keys[command.keys[0]], " noreply" if command.silent else ""
        if verb == "unknown":
            return "knows nobody\r\n"
        if verb in {"get", "gets"}:
            return f"{verb} {self._names(command)}\r\n"
        if verb == "gat":
            return f"gat {command.expiry} {self._names(command)}\r\n"
        if verb == "delete":
            return f"delete {key}{tail}\r\n"
        if verb in {"incr", "decr"}:
            return f"{verb} {key} {command.amount}{tail}\r\n"
        if verb == "touch":
            return f"touch {key} {command.expiry}{tail}\r\n"
        number = f" {self._number(command)}" if verb.startswith("cas") else ""
        value = command.value
        head = f"{verb.removesuffix('-old')} {key} {command.flags} {command.expiry} {len(value)}{number}{tail}"
        return f"{head}\r\n{value}\r\n"

    def answer(self, command: Command) -> tuple[str, list[str]]:
        """Return the answer as a template, and the keys whose cas numbers stand in it, and change the items."""
        text, shown = self._answers()[command.verb](command)
        return ("" if command.silent else text), shown

    def learn(self, key: str, number: int) -> bool:
        """Take the cas number that was shown of a key; False where it cannot be that."""
        item = self.items.get(key)
        if item is None:
            return True  # deleted or changed by a later command of the same packet
        if item.number not in {None, number} or number in self.past.get(key, ()):
            return False
        item.number = number
        return True

    def _answers(self) -> dict[str, Callable[[Command], tuple[str, list[str]]]]:
        return {
            **dict.fromkeys(STORES, self._store),
            **dict.fromkeys(("cas", "cas-old"), self._cas),
            **dict.fromkeys(("get", "gets", "gat"), self._get),
            **dict.fromkeys(("incr", "decr"), self._count),
            "delete": self._delete,
            "touch": self._touch,
            "unknown": lambda _: ("ERROR\r\n", []),
        }

    def _names(self, command: Command) -> str:
        return " ".join(self.keys[number] for number in command.keys)

    def _number(self, command: Command) -> int:
        key = self.keys[command.keys[0]]
        if command.verb == "cas-old":
            return max(self.past.get(key, ()), default=NEVER_A_NUMBER)
        item = self.items.get(key)
        return NEVER_A_NUMBER if item is None or item.number is None else item.number

    def _write(self, key: str, item: Item | None, expiry: int = 0) -> None:
        before = self.items.pop(key, None)
        if before is not None and before.number is not None:
            self.past.setdefault(key, []).append(before.number)
        if item is not None and not _is_over(expiry):
            self.items[key] = item

    def _store(self, command: Command) -> tuple[str, list[str]]:
        key = self.keys[command.keys[0]]
        item = self.items.get(key)
        verb = command.verb
        if (verb == "add") == (item is not None) and verb != "set":
            return "NOT_STORED\r\n", []
        if item is not None and verb in {"append", "prepend"}:
            value = item.value + command.value if verb == "append" else command.value + item.value
            self._write(key, Item(value, item.flags))
        else:
            self._write(key, Item(command.value, command.flags), command.expiry)
        return "STORED\r\n", []

    def _cas(self, command: Command) -> tuple[str, list[str]]:
        key = self.keys[command.keys[0]]
        item = self.items.get(key)
        if item is None:
            return "NOT_FOUND\r\n", []
        if item.number is None or item.number != self._number(command):
            return "EXISTS\r\n", []
        self._write(key, Item(command.value, command.flags), command.expiry)
        return "STORED\r\n", []

    def _get(self, command: Command) -> tuple[str, list[str]]:
        blocks, shown = [], []
        for key in (self.keys[number] for number in command.keys):
            item = self.items.get(key)
            if item is None:
                continue
            if command.verb == "gat" and _is_over(command.expiry):
                # The item goes with its first mention.
                self._write(key, None)
            cas = f" {CAS}" if command.verb == "gets" else ""
            shown += [key] if cas else []
            blocks.append(f"VALUE {key} {item.flags} {len(item.value)}{cas}\r\n{item.value}\r\n")
        return "".join(blocks) + "END\r\n", shown

    def _delete(self, command: Command) -> tuple[str, list[str]]:
        key = self.keys[command.keys[0]]
        if key not in self.items:
            return "NOT_FOUND\r\n", []
        self._write(key, None)
        return "DELETED\r\n", []

    def _count(self, command: Command) -> tuple[str, list[str]]:
        key = self.keys[command.keys[0]]
        if not command.amount.isdigit() or int(command.amount) >= TWO_64:
            return NO_AMOUNT, []
        item = self.items.get(key)
        if item is None:
            return "NOT_FOUND\r\n", []
        if not re.fullmatch(r"\d+ *", item.value) or int(item.value) >= TWO_64:
            return NOT_A_NUMBER, []
        old, amount = int(item.value), int(command.amount)
        new = (old + amount) % TWO_64 if command.verb == "incr" else max(0, old - amount)
        self._write(key, replace(item, value=str(new).ljust(len(item.value)), number=None))
        return f"{new}\r\n", []

    def _touch(self, command: Command) -> tuple[str, list[str]]:
        key = self.keys[command.keys[0]]
        if key not in self.items:
            return "NOT_FOUND\r\n", []
        if _is_over(command.expiry):
            self._write(key, None)
        return "TOUCHED\r\n", []


def _is_over(expiry: int) -> bool:
    """Return whether an item is gone at once that has this expiry."""
    return expiry < 0 or THIRTY_DAYS < expiry < FAR_FUTURE
