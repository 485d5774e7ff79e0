"""What a relation and a listing are: their place in the world, and the several ways of putting them into words."""

from dataclasses import dataclass, fields


@dataclass(frozen=True, kw_only=True)
class RelationWording:
    """One relation of the world.

    In every wording `{s}` is the subject, `{o}` the object, `{p}` "her", "his" or "its", `{he}` the pronoun, `{w}`
    a name or a year that a question about time speaks of. Wordings come near (in the words of the standard query) and
    far (in other words, so that this query misses them).
    """

    name: str
    subject: str
    """Kind of entity that has it."""
    object: str
    """Kind of entity that it leads to; year or word for a plain value."""
    noun: str
    """How plans, merges and evidence call it: "birth year" of a person."""
    sources: tuple[str, ...]
    """Where it can stand, the most current source last."""
    asks: tuple[str, ...]
    """Whole questions."""
    asks_far: tuple[str, ...] = ()
    phrases: tuple[str, ...]
    """Noun phrases that stand for the object inside a longer question."""
    phrases_far: tuple[str, ...] = ()
    rephrased: tuple[str, ...]
    """Other queries for the same thing."""
    stated: tuple[str, ...]
    """What the subject does, as the rest of a sentence: "was born in {o}"."""
    stated_far: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()
    """Whole sentences that do not begin with the subject."""
    trail: tuple[str, ...] = ()
    """Participles before or after the subject: "born in {o}"."""
    follow: tuple[str, ...] = ()
    """Questions that lean on an earlier one."""
    past: tuple[str, ...] = ()
    """Of what changes: what held from {since} to {until}, as a whole sentence."""
    asks_in: tuple[str, ...] = ()
    asks_before: tuple[str, ...] = ()
    asks_since: tuple[str, ...] = ()
    news: tuple[str, ...] = ()
    """Headline and lead of a dated report; `{old}` is what it replaces, if the relation changes."""
    hearsay: tuple[str, ...] = ()
    """What an unreliable page says."""
    distractors: tuple[str, ...] = ()
    """Sentences that use the words of the relation and state nothing of it."""

    @property
    def changes(self) -> bool:
        """Whether news can make the page outdated."""
        return len(self.sources) > 1


@dataclass(frozen=True, kw_only=True)
class Listing:
    """A relation from one to many, stated as one list or one by one."""

    name: str
    subject: str
    member: str
    source: str
    noun: str
    """As plans, merges and evidence call it: "people born in" Tarnton."""
    rephrased: str
    stated: tuple[str, ...]
    clause: tuple[str, ...]
    """As a condition in a question."""
    counts: tuple[str, ...]
    """Questions for how many there are."""
    scattered: str = ""
    """The relation that states it member by member, where no document states it as a whole."""


def wordings(of: RelationWording | Listing) -> list[str]:
    """Every template of a relation or a listing."""
    names = ("name", "subject", "object", "noun", "sources", "member", "source", "scattered")
    values = [getattr(of, field.name) for field in fields(of) if field.name not in names]
    return [text for value in values for text in ((value,) if isinstance(value, str) else value) if text]
