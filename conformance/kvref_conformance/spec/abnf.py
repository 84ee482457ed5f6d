"""An interpreter of ABNF (RFC 5234, with the strings of RFC 7405) for grammars without recursion.

A rule becomes a regular expression over characters that stand for octets; rules that the caller names are captured.
"""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING, Final

from kvref.errors import SuiteError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

_TOKEN: Final = re.compile(
    r"""\s*(?:
    (?P<repeat>\d*\*\d*|\d+(?=[\[("%A-Za-z]))
    | (?P<string>(?:%s)?"[^"]*")
    | (?P<number>%[xdb][0-9A-Fa-f]+(?:(?:\.[0-9A-Fa-f]+)+|-[0-9A-Fa-f]+)?)
    | (?P<name>[A-Za-z][A-Za-z0-9-]*)
    | (?P<mark>[/()\[\]])
    )""",
    re.VERBOSE,
)
_RULE: Final = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(=/?)\s*(.*)", re.DOTALL)
_BASES: Final = {"x": 16, "d": 10, "b": 2}


class Abnf:
    """A grammar.

    Args:
        text: the rules; a rule begins in the first column, its continuation lines do not.

    Raises:
        SuiteError: the text is not ABNF, a rule is defined twice without `=/`, is missing, or contains itself.
    """

    def __init__(self, text: str) -> None:
        self.rules: Mapping[str, str] = _rules(text)
        self._patterns: dict[tuple[str, frozenset[str]], re.Pattern[str]] = {}
        for name in self.rules:
            self.pattern(name)

    def pattern(self, rule: str, captured: Collection[str] = ()) -> re.Pattern[str]:
        """Return the regular expression of a rule, with groups `RULE__N` for the rules to capture.

        Args:
            rule: its name.
            captured: names of rules.
        """
        key = (rule, frozenset(captured))
        if key not in self._patterns:
            self._patterns[key] = re.compile(_Writer(self.rules, key[1]).rule(rule, ()), re.DOTALL)
        return self._patterns[key]

    def closure(self, names: Iterable[str]) -> frozenset[str]:
        """Return the names of rules and of all rules that they contain.

        Args:
            names: of the rules.
        """
        found: set[str] = set()
        left = list(names)
        while left:
            name = left.pop()
            if name not in found:
                found.add(name)
                left += [each for kind, each in _tokens(name, self.rules[name]) if kind == "name"]
        return frozenset(found)

    def match(self, rule: str, text: str, captured: Collection[str] = ()) -> list[tuple[str, str]] | None:
        """Return the captured rules with their texts, in the order of the text; None if the text does not match.

        Of a rule that is repeated, the last occurrence is returned.

        Args:
            rule: name of the rule that the whole text must match.
            text: characters that stand for octets.
            captured: names of rules.
        """
        found = self.pattern(rule, captured).fullmatch(text)
        if found is None:
            return None
        groups = [(found.start(name), name, each) for name, each in found.groupdict().items() if each is not None]
        return [(name.rpartition("__")[0].replace("_", "-"), each) for _, name, each in sorted(groups)]


def _rules(text: str) -> dict[str, str]:
    rules: dict[str, str] = {}
    for block in re.split(r"\n(?=[A-Za-z])", "\n" + "\n".join(map(_without_comment, text.splitlines()))):
        if not block.strip():
            continue
        found = _RULE.fullmatch(block.strip())
        if found is None:
            raise SuiteError(f"no rule of ABNF: {block.strip()!r}")
        name, sign, body = found.groups()
        if (sign == "=/") != (name in rules):
            raise SuiteError(f"rule {name}: the first definition has =, further ones have =/")
        rules[name] = f"{rules[name]} / {body}" if sign == "=/" else body
    return rules


def _without_comment(line: str) -> str:
    inside = False
    for place, character in enumerate(line):
        inside ^= character == '"'
        if character == ";" and not inside:
            return line[:place].rstrip()
    return line.rstrip()


class _Writer:
    """Writes the regular expression of a rule; rules that it names are written in their place."""

    def __init__(self, rules: Mapping[str, str], captured: frozenset[str]) -> None:
        self._rules = rules
        self._captured = captured
        self._numbers = count(1)

    def rule(self, name: str, above: tuple[str, ...]) -> str:
        """Return the expression of a rule.

        Args:
            name: of the rule.
            above: names of the rules that contain it.
        """
        if name in above:
            raise SuiteError(f"rule {name} contains itself")
        if name not in self._rules:
            raise SuiteError(f"there is no rule {name}")
        tokens = list(_tokens(name, self._rules[name]))
        written = self._alternatives(tokens, (*above, name))
        if tokens:
            raise SuiteError(f"rule {name}: unexpected {tokens[0][1]!r}")
        if name not in self._captured:
            return f"(?:{written})"
        return f"(?P<{name.replace('-', '_')}__{next(self._numbers)}>{written})"

    def _alternatives(self, tokens: list[tuple[str, str]], above: tuple[str, ...]) -> str:
        parts = [""]
        while tokens and tokens[0][1] not in (")", "]"):
            if tokens[0][1] == "/":
                tokens.pop(0)
                parts.append("")
            else:
                parts[-1] += self._repetition(tokens, above)
        return "|".join(parts)

    def _repetition(self, tokens: list[tuple[str, str]], above: tuple[str, ...]) -> str:
        times = tokens.pop(0)[1] if tokens[0][0] == "repeat" else ""
        if not tokens:
            raise SuiteError(f"rule {above[-1]}: nothing follows {times}")
        element = self._element(tokens, above)
        if not times:
            return element
        least, star, most = times.partition("*")
        return f"(?:{element}){{{least or 0},{most}}}" if star else f"(?:{element}){{{times}}}"

    def _element(self, tokens: list[tuple[str, str]], above: tuple[str, ...]) -> str:
        kind, text = tokens.pop(0)
        if kind == "name":
            return self.rule(text, above)
        if kind == "string":
            exact = text.startswith("%s")
            literal = re.escape(text.removeprefix("%s")[1:-1])
            return literal if exact else f"(?i:{literal})"
        if kind == "number":
            return _number(text)
        inner = self._alternatives(tokens, above)
        closing = {"(": ")", "[": "]"}.get(text)
        if closing is None or not tokens or tokens.pop(0)[1] != closing:
            raise SuiteError(f"rule {above[-1]}: {text!r} is not closed")
        return f"(?:{inner})" + ("?" if text == "[" else "")


def _tokens(rule: str, body: str) -> Iterator[tuple[str, str]]:
    position = 0
    while body[position:].strip():
        found = _TOKEN.match(body, position)
        if found is None or found.lastgroup is None:
            raise SuiteError(f"rule {rule}: unexpected {body[position:].strip()!r}")
        yield found.lastgroup, found[found.lastgroup]
        position = found.end()


def _number(text: str) -> str:
    base, digits = _BASES[text[1]], text[2:]
    if "-" in digits:
        low, high = (_character(each, base) for each in digits.split("-"))
        return f"[{low}-{high}]"
    return "".join(_character(each, base) for each in digits.split("."))


def _character(digits: str, base: int) -> str:
    return f"\\x{int(digits, base):02x}"
