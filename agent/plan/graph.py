"""Plans that ask documents and a knowledge graph at once: `{"query": …, "entity": [...], "relation": [...]}`."""

from collections.abc import Collection
from typing import Any, Final

from agent.errors import PlanError
from agent.plan.json import as_object, read_values, strings
from agent.plan.text import DraftPlan, DraftQuery, checked

DOCUMENTS: Final = "documents"
"""Name of the source that searches every source but the graph."""
GRAPH: Final = "kg"
_FORM: Final = 'write {"query": "…", "entity": ["…"], "relation": ["…"]}'
_KEYS: Final = {
    "query": "query",
    "entity": "entity",
    "entities": "entity",
    "relation": "relation",
    "relations": "relation",
}


def read_graph(text: str, *, sources: Collection[str]) -> DraftPlan:
    """Read one such object: node A searches the documents, node K the graph, each where there is one.

    The graph is searched by the names of its entities: they are in [brackets], which the graph takes at their word.

    Raises:
        PlanError: it is no such object, or it has no query; the sentence shows the form.
    """
    fields = _fields(text)
    queries = strings(fields.get("query"), "query")
    if len(queries) > 1:
        raise PlanError(f"a search has one query, and this one has {len(queries)}; {_FORM}")
    entities, relations = strings(fields.get("entity"), "entity"), strings(fields.get("relation"), "relation")
    query = queries[0] if queries else ""
    drafts = DraftPlan()
    if query and (documents := _documents(sources)):
        drafts.queries.append(DraftQuery(query, checked(query, query), id="A", source=documents))
    named = [f"[{_unbracketed(name)}]" for name in entities] or ([query] if query else [])
    if (entities or relations) and named and GRAPH in sources:
        query = checked(" ".join([*named, *relations]), "entity and relation")
        drafts.queries.append(DraftQuery(query, query, id="K", source=GRAPH, entities=entities, relations=relations))
    if not drafts.queries:
        raise PlanError(f"the search has no query; {_FORM}")
    return drafts


def _fields(text: str) -> dict[str, Any]:
    try:
        values = [value for value, _ in read_values(text)]
    except PlanError as error:
        raise PlanError(f"{error}; {_FORM}") from error
    given = as_object(values[0]) if len(values) == 1 else None
    if given is None:
        said = "nothing" if not values else "something else" if len(values) == 1 else f"{len(values)} values"
        raise PlanError(f"a search is one JSON object, and this is {said}; {_FORM}")
    if strange := next((name for name in given if name.casefold() not in _KEYS), None):
        raise PlanError(f"{strange!r} is no key of a search; {_FORM}")
    fields = {_KEYS[name.casefold()]: value for name, value in given.items()}
    if len(fields) < len(given):
        raise PlanError(f"a key occurs twice; {_FORM}")
    return fields


def _documents(sources: Collection[str]) -> str | None:
    """The source for documents; None where there is nothing but a graph."""
    if DOCUMENTS in sources:
        return DOCUMENTS
    if set(sources) <= {GRAPH, "all"} and GRAPH in sources:
        return None
    return "all" if "all" in sources else next((name for name in sources if name != GRAPH), None)


def _unbracketed(name: str) -> str:
    return name.replace("[", "(").replace("]", ")")
