"""Which triples fit a question: by the words they share with it, at most N triples and tokens. Pure.

Triples of one entity and relation rise and fall together, as they are shown in one passage; groups that fit equally
well share the room.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from agent.sources.kg.triples import GraphTriple
from agent.sources.kg.words import asks, estimate_tokens, meanings, readable, stems

LIMIT = 100
TOKENS = 1024
_KIN = 0.6
"""What a word counts that means the same, beside one that is the same."""
_NEWS = 0.5
"""What a word counts that the question shares with the end that it does not name."""


def rank_triples(
    query: str,
    triples: Iterable[GraphTriple],
    *,
    limit: int = LIMIT,
    tokens: int = TOKENS,
    aliases: Mapping[str, Sequence[str]] | None = None,
) -> list[GraphTriple]:
    """Order triples by how well they fit a question, and keep what has room.

    Args:
        query: the question's text.
        triples: of the entities that it names; in a group the order stays, but for those whose other end is named, too.
        limit: how many are kept at most.
        tokens: how long their passages may be together, by `estimate_tokens`.
        aliases: other names of relations.

    Returns:
        Best first; the triples of one group are together.
    """
    groups = _grouped(triples)
    if not groups:
        return []
    words = [_words(group[0].relation, aliases or {}) for group in groups]
    scorer = _Scorer(query, words)
    scored = [scorer.score(group, relation) for group, relation in zip(groups, words, strict=True)]
    scored.sort(key=lambda pair: -pair[0])
    tiers: dict[float, list[list[GraphTriple]]] = {}
    for score, group in scored:
        tiers.setdefault(score, []).append(group)
    room = _Room(limit, tokens)
    return [triple for tier in tiers.values() for group in room.take(tier) for triple in group]


def _grouped(triples: Iterable[GraphTriple]) -> list[list[GraphTriple]]:
    groups: dict[tuple[str, str, str], dict[tuple[str, str], GraphTriple]] = {}
    for triple in triples:
        news = (triple.news, triple.tail_id if triple.found_by == "head" else triple.head_id)
        groups.setdefault(triple.group, {}).setdefault(news, triple)
    return [list(group.values()) for group in groups.values()]


@lru_cache(maxsize=10_000)
def _stems_of(name: str) -> frozenset[str]:
    return frozenset(stems(readable(name)))


def _words(relation: str, aliases: Mapping[str, Sequence[str]]) -> tuple[frozenset[str], frozenset[str]]:
    """A relation's own stems, and those of its other names."""
    own = _stems_of(relation)
    other = frozenset(word for alias in aliases.get(relation, ()) for word in _stems_of(alias))
    return own, other - own


class _Scorer:
    """Weighs words by how few of the relations at hand have them."""

    def __init__(self, query: str, relations: Sequence[tuple[frozenset[str], frozenset[str]]]) -> None:
        self._question = Counter(asks(query))
        self._known: dict[str, frozenset[str]] = {}
        distinct = set(relations)
        self._in = Counter(word for own, _ in distinct for word in own)
        self._kin_in = Counter(meaning for own, _ in distinct for meaning in meanings(own))
        self._of = len(distinct)

    def score(
        self, group: Sequence[GraphTriple], relation: tuple[frozenset[str], frozenset[str]]
    ) -> tuple[float, list[GraphTriple]]:
        """How well a group fits, the same for those that fit equally well; and the group in the order of its fit."""
        wanted = self._wanted_beside(group[0].mention or group[0].known)
        own, other = relation
        same = sum(self._rarity(self._in[word]) for word in own & wanted)
        kin = sum(self._rarity(self._kin_in[meaning]) for meaning in meanings(own - wanted) & meanings(wanted - own))
        alias = self._rarity(1) if other & wanted else 0.0  # once: some relations have thirty other names
        news = [len(_overlap(triple.news, wanted)) for triple in group]
        unwanted = len(own - wanted) / (1 + len(own))
        fit = same + _KIN * (kin + alias) + _NEWS * max(news) - 0.1 * unwanted
        order = sorted(range(len(group)), key=lambda at: -news[at]) if max(news) else range(len(group))
        score = round(group[0].weight * (1 + max(fit, 0.0)) + 0.01 * min(fit, 0.0), 6)
        return score, [group[at] for at in order]

    def _wanted_beside(self, name: str) -> frozenset[str]:
        """The question's words without those that only name the entity."""
        if name not in self._known:
            self._known[name] = frozenset((self._question - Counter(asks(name))).keys())
        return self._known[name]

    def _rarity(self, count: int) -> float:
        return math.log(1 + self._of / max(count, 1)) / math.log(1 + self._of)


def _overlap(name: str, wanted: frozenset[str]) -> frozenset[str]:
    """The words of a name that the question wants, if all of them are: one of three is chance."""
    words = frozenset(stems(name)) if wanted else frozenset[str]()
    return words & wanted if words and words <= wanted else frozenset()


class _Room:
    """How many triples and tokens are left."""

    def __init__(self, triples: int, tokens: int) -> None:
        self._triples = triples
        self._tokens = tokens

    def take(self, tier: Sequence[list[GraphTriple]]) -> list[list[GraphTriple]]:
        """Deal the room out between groups that fit equally well, one triple each in turn."""
        kept: list[list[GraphTriple]] = [[] for _ in tier]
        open_ = list(range(len(tier)))
        while open_ and self._triples > 0:
            for at in tuple(open_):
                group = tier[at]
                if len(kept[at]) == len(group) or not self._pays(group[len(kept[at])], first=not kept[at]):
                    open_.remove(at)
                    continue
                kept[at].append(group[len(kept[at])])
        return [group for group in kept if group]

    def _pays(self, triple: GraphTriple, *, first: bool) -> bool:
        """Whether there is room for a triple, which is then taken."""
        text = f"{triple.known} | {readable(triple.relation)} | {triple.news}" if first else f"; {triple.news}"
        cost = estimate_tokens(text)
        if self._triples < 1 or cost > self._tokens:
            return False
        self._triples -= 1
        self._tokens -= cost
        return True
