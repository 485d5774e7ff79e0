"""Why a page could not be had. That is no failed search: the hit keeps its snippet, and a note says why."""

from typing import Literal

from agent.errors import AgentError

PageErrorKind = Literal[
    "refused",  # the guard: a URL, an address or a redirect that is not for us
    "robots",  # the site does not want it fetched
    "status",  # any answer but 200
    "type",  # a content type that holds no text for us
    "size",  # more than may be read
    "slow",  # not there in time
    "unreachable",  # no address, no connection, or the connection broke
    "unreadable",  # no text came out of it
]


class PageError(AgentError):
    """One page could not be had; the text is a short reason that fits into a note."""

    def __init__(self, why: str, *, kind: PageErrorKind) -> None:
        super().__init__(why)
        self.kind: PageErrorKind = kind
