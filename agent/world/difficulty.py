"""What makes a world easy or hard: every setting has a range, a meaning and a default, and goes into the card."""

from typing import Annotated

from pydantic import Field

from agent.evidence import Frozen

Share = Annotated[float, Field(ge=0, le=1)]


class Difficulty(Frozen):
    """How a world is made. All are shares from 0 to 1, but for `hops`."""

    noise: Share = 0.3
    """Distractors: asides that use the words of a relation and state nothing, as many as this share of all pages and
    reports; and this share of new names take over a word of an older one."""
    namesakes: Share = 0.2
    """People who share their whole name with another one; the profession separates them."""
    paraphrase: Share = 0.4
    """Pages and questions whose wording shares no content word with the standard query."""
    exclusivity: Share = 0.7
    """Facts that are in exactly one source; the others are in a second one too."""
    staleness: Share = 0.5
    """Changing facts whose page is outdated, so that only a report has the current value."""
    contradiction: Share = 0.15
    """Facts that a less reliable and older page contradicts."""
    hops: Annotated[int, Field(ge=1, le=4)] = 4
    """The longest chain in a question."""
    unanswerable: Share = 0.07
    """Questions that nothing in the world answers."""
    well_known: Share = 0.05
    """Questions of the closed set that is the same in every world."""
