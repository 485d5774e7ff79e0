"""One turn of a chat model, read from the pieces that a server sends: thought, text, and where the text stops."""

from collections.abc import Sequence

from agent.protocols.base import Role, TextProtocol
from agent.protocols.parse import TagReader


class ChatTurn:
    """Puts a turn together. `text` is what the loop reads, `content` goes to the server in the next turn."""

    def __init__(self, protocol: TextProtocol, stop: Sequence[str], *, opened: Role | None = None) -> None:
        """Read a turn, from inside the block `opened` where the turn goes on in one."""
        self.stopped = False
        """A stop text was said."""
        self._protocol = protocol
        self._stop = stop
        self._opened = opened
        self._reader = TagReader(protocol.policy_marks, opened=opened)
        self._thinking = False
        self._held = ""
        self._text: list[str] = []
        self._content: list[str] = []
        self._tail = ""
        """The end of the content, as long as a stop text may be."""
        self._longest = max(map(len, stop), default=0)
        self.chars = 0
        """Of content and reasoning together."""

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def content(self) -> str:
        return "".join(self._content)

    def think(self, text: str) -> str:
        """Take reasoning that the server sends apart from the text; gives it inside the protocol's tags of a thought.

        A closing tag in it is changed: what is thought there never speaks for the text. Reasoning after the text has
        begun is left out, and so is all of it inside of another block, or where the protocol has no thoughts.
        """
        self.chars += len(text)
        if not text or "thought" not in self._protocol.tags or self._content or self._opened:
            return ""
        new = "" if self._thinking else self._protocol.opening("thought")
        self._thinking = True
        closing = self._protocol.closing("thought")
        held = (self._held + text).replace(closing, f"({closing[1:-1]})")
        keep = _begun(closing, held)
        self._held = held[len(held) - keep :]
        return self._emit(new + held[: len(held) - keep])

    @property
    def open_role(self) -> Role | None:
        """The role of the block that is open."""
        return self._reader.open_role

    def say(self, text: str) -> str:
        """Take text; gives what of it counts, up to the end of the first stop text."""
        if not text or self.stopped:
            return ""
        seen = self._tail + text
        ends = [at + len(mark) for mark in self._stop if (at := seen.find(mark)) >= 0]
        if ends:
            self.stopped = True
            seen = seen[: min(ends)]
        new = seen[len(self._tail) :]
        self._tail = seen[-self._longest :] if self._longest else ""
        self.chars += len(new)
        thought = self._end_thought()
        self._content.append(new)
        for _ in self._reader.feed(new):
            pass
        return thought + self._emit(new)

    def end(self, *, natural: bool) -> str:
        """The server has ended the turn; gives what it left out.

        Args:
            natural: by a stop text or of itself, not for want of tokens. Servers drop the stop text, or what they have
                not sent of it: where the block that it closes is open, it is put back.
        """
        thought = self._end_thought()
        role = self._reader.open_role
        closing = self._protocol.closing(role) if role else ""
        if natural and not self.stopped and closing in self._stop:
            return thought + self.say(closing[_begun(closing, self._tail) :])
        return thought

    def _end_thought(self) -> str:
        if not self._thinking:
            return ""
        self._thinking = False
        held, self._held = self._held, ""
        return self._emit(f"{held}{self._protocol.closing('thought')}\n")

    def _emit(self, text: str) -> str:
        self._text.append(text)
        return text


def _begun(mark: str, text: str) -> int:
    """How many characters of `mark` the text ends with."""
    return next((n for n in range(min(len(mark), len(text)), 0, -1) if text.endswith(mark[:n])), 0)
