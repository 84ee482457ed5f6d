"""The error that ends a command with a reply of its own."""


class Refusal(Exception):
    """A command is refused; the reply says why."""

    def __init__(self, reply: str, too_large: bool = False) -> None:
        """Keep the reply, as one line."""
        super().__init__(reply)
        self.reply = " ".join(reply.split("\r")).replace("\n", " ").encode("utf-8", "replace")
        self.too_large = too_large
