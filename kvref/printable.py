"""Text of others as text that is safe to show: what an endpoint, a client or a file says changes no terminal."""

from __future__ import annotations


def printable(text: str, *, keep: str = "") -> str:
    r"""Return text whose characters are all printable: others, such as ESC, C1 and line ends, are escaped as \xNN.

    Args:
        text: from an endpoint, a client or a file.
        keep: characters that stay as they are, for example a line end where the text has several lines.
    """
    if text.isprintable():
        return text
    return "".join(
        each if each in keep or each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
