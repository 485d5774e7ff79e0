"""Relations as knowledge graphs name them: how they are claimed, what is taken for them, when a sentence states one."""

import random
import re
from collections.abc import Mapping
from typing import Final

from lab.benchmarks.checks.english import capital

WORDINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "director": ("{s} was directed by {o}.", "{o} directed {s}.", "The director of {s} is {o}.",
    "{o} is the director of {s}."),
    "performer": ("{s} was performed by {o}.", "{s} is by {o}.", "{o} performed {s}.",
    "The performer of {s} is {o}."),
    "composer": ("The music of {s} was composed by {o}.", "{o} composed {s}.", "The composer of {s} is {o}."),
    "author": ("{s} was written by {o}.", "{o} wrote {s}.", "The author of {s} is {o}.", "{o} is the author of {s}."),
    "screenwriter": ("{s} was written by {o}.", "{o} wrote {s}.", "The screenwriter of {s} is {o}."),
    "producer": ("{s} was produced by {o}.", "{o} produced {s}.", "The producer of {s} is {o}."),
    "publisher": ("{s} was published by {o}.", "{o} published {s}.", "The publisher of {s} is {o}."),
    "developer": ("{s} was developed by {o}.", "{o} developed {s}.", "The developer of {s} is {o}."),
    "record label": ("{s} was released on {o}.", "{o} released {s}.", "The label of {s} is {o}."),
    "cast member": ("{o} starred in {s}.", "{s} stars {o}.", "{o} is an actor in {s}.", "{s} features {o}."),
    "creator": ("{s} was created by {o}.", "{o} created {s}.", "The creator of {s} is {o}."),
    "founded by": ("{s} was founded by {o}.", "{o} founded {s}.", "The founder of {s} is {o}."),
    "owned by": ("{s} is owned by {o}.", "{o} owns {s}.", "The owner of {s} is {o}."),
    "manufacturer": ("{s} was manufactured by {o}.", "{o} made {s}."),
    "operator": ("{s} is operated by {o}.", "{o} operates {s}."),
    "original network": ("{s} aired on {o}.", "{o} broadcast {s}.", "The original network of {s} is {o}."),
    "production company": ("{s} was produced by {o}.", "The production company of {s} is {o}."),
    "date of birth": ("{s} was born on {o}.", "The birthday of {s} is {o}.", "{s} came into the world on {o}."),
    "place of birth": ("{s} was born in {o}.", "The birthplace of {s} is {o}.", "{s} is a native of {o}."),
    "date of death": ("{s} died on {o}.", "The date of death of {s} is {o}.", "{s} passed away on {o}."),
    "place of death": ("{s} died in {o}.", "The place of death of {s} is {o}.", "{s} passed away in {o}."),
    "spouse": ("{s} was married to {o}.", "{o} was the spouse of {s}.", "{s} and {o} were married."),
    "father": ("{o} was the father of {s}.", "{s} was a child of {o}.", "The father of {s} is {o}."),
    "mother": ("{o} was the mother of {s}.", "{s} was a child of {o}.", "The mother of {s} is {o}."),
    "sibling": ("{s} and {o} are siblings.", "{o} is a sibling of {s}."),
    "educated at": ("{s} studied at {o}.", "{s} was educated at {o}.", "{s} attended {o}.", "{s} went to {o}."),
    "member of political party": ("{s} was a member of {o}.", "{s} belonged to {o}.", "The party of {s} is {o}."),
    "award received": ("{s} received {o}.", "{s} was awarded {o}.", "{s} won {o}."),
    "military branch": ("{s} served in {o}.", "{s} was in {o}."),
    "member of sports team": ("{s} played for {o}.", "{o} had {s} as a player."),
    "inception": ("{s} was founded in {o}.", "{s} was established in {o}.", "{s} has existed since {o}."),
    "headquarters location": ("{s} is based in {o}.", "The headquarters of {s} are in {o}.",
    "{s} is headquartered in {o}."),
    "located in the administrative territorial entity": ("{s} is located in {o}.", "{s} lies in {o}.",
    "{s} is in {o}."),
    "capital": ("The capital of {s} is {o}.", "{o} is the capital of {s}."),
    "official language": ("The official language of {s} is {o}.", "{o} is an official language of {s}."),
    "publication date": ("{s} was released in {o}.", "{s} came out in {o}.", "The release date of {s} is {o}."),
    "followed by": ("{s} was followed by {o}.", "{o} came after {s}."),
    "follows": ("{s} follows {o}.", "{s} came after {o}."),
    "mouth of the watercourse": ("{s} flows into {o}.", "{s} is a tributary of {o}."),
    "residence": ("{s} lives in {o}.", "{s} lived in {o}."),
    "religion": ("The religion of {s} is {o}.",),
    "country of citizenship": ("{s} is {o}.", "The nationality of {s} is {o}."),
    "cause of death": ("{s} died of {o}.", "The cause of death of {s} was {o}."),
}  # fmt: skip
"""Relation → how it is claimed of a subject and an object. An adjective is claimed as one."""
OTHERS: Final[Mapping[str, tuple[str, ...]]] = {
    "director": ("composer", "founded by"), "performer": ("director", "publisher"), "composer": ("director",
    "owned by"),
    "author": ("director", "owned by"), "screenwriter": ("composer", "owned by"), "producer": ("composer", "father"),
    "publisher": ("author", "director"), "developer": ("owned by", "author"), "record label": ("author", "director"),
    "cast member": ("director", "composer"), "creator": ("owned by", "publisher"), "founded by": ("mother",
    "director"),
    "owned by": ("founded by", "author"), "date of birth": ("date of death",), "date of death": ("date of birth",),
    "place of birth": ("place of death", "educated at"), "place of death": ("place of birth", "educated at"),
    "spouse": ("father", "sibling"), "father": ("spouse", "sibling"), "mother": ("spouse", "sibling"),
    "sibling": ("spouse", "father"), "educated at": ("founded by", "place of birth"), "inception": ("date of death",),
    "headquarters location": ("place of birth", "capital"), "capital": ("founded by", "director"),
    "publication date": ("date of birth", "date of death"), "residence": ("place of birth", "place of death"),
    "award received": ("founded by", "educated at"), "member of sports team": ("founded by", "owned by"),
    "original network": ("director", "founded by"), "member of political party": ("founded by", "spouse"),
    "military branch": ("founded by", "owned by"), "manufacturer": ("owned by", "author"),
}  # fmt: skip
"""Relation → others that a careless reader takes for it, or that the same two names could have."""
CUES: Final[Mapping[str, str]] = {
    "composer": "compos|music|song|score", "director": "direct|film", "founded by": "found|establish|start|creat",
    "owned by": "own|bought|acqui|subsid|part of|of the", "publisher": "publish|releas|issue",
    "author": "writ|wrote|author|book",
    "father": "father|son|daughter|born", "mother": "mother|son|daughter|born",
    "spouse": "marr|wife|husband|wed|spouse",
    "sibling": "brother|sister|sibling", "educated at": "stud|educat|attend|school|graduat|universit",
    "place of death": "died|death|dead", "place of birth": "born|birth|native|from",
    "date of death": "died|death|–|-|—",
    "date of birth": "born|birth|–|-|—", "capital": "capital",
}  # fmt: skip
"""Relation → words with which its sentence may state it: there it is false only if the page gives another value."""
TURNED: Final = frozenset(
    "director|performer|author|screenwriter|producer|publisher|developer|father|mother|capital|follows|founded by"
    "|owned by|followed by|mouth of the watercourse|place of birth|educated at|cast member".split("|")
)
"""Relations whose ends a writer may exchange."""


def folded(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def names(text: str, name: str) -> bool:
    """Whether a text has a name, as whole words."""
    return f" {folded(name)} " in f" {folded(text)} "


def pointed(relation: str, subject: str, value: str) -> str:
    return f"{subject}, {relation}: {value}"


def worded(relation: str, subject: str, value: str, *, rng: random.Random) -> str:
    if relation in ("member of political party", "military branch", "award received") and not value.startswith("the "):
        value = f"the {value}"
    text = rng.choice(WORDINGS[relation]).format(s=subject, o=value)
    if relation.startswith("date of") and re.fullmatch(r"\d{4}", value):
        text = text.replace(" on ", " in ")
    if relation == "publication date" and not re.fullmatch(r"(\w+ )?\d{4}", value):
        text = text.replace(" in ", " on ")
    return capital(text)


def dated(text: str) -> bool:
    return bool(re.search(r"\b\d{4}\b", text))


_STATED: Final[Mapping[str, str]] = {
    "place of birth": r"(born|birth)((?!died|death|moved|from)[^.]){0,50} (in|at|near) [^.]{0,30}@|native of @"
    r"|\(\s*[^()–]*\d{4}[^()–-]*@[^()]*\d{4}",
    "place of death": r"(die[ds]|executed|killed|passed away)((?!born)[^.]){0,90}@|[–-][^()–-]*\d{4}[^()]*@[^()]*\)",
    "date of birth": r"born[^.]{0,70}@|\(\s*[^()–]{0,60}@",
    "date of death": r"(died|death|killed|executed|passed away)[^.]{0,90}@|[–-] ?[^()]{0,60}@",
    "award received": r"award|receiv|won|prize|medal|cross|winner", "religion": "$^", "country of origin": "$^",
    "educated at": r"(stud|educat|attend|school|graduat|degree|alumn)", "sibling": r"brother|sister|sibling",
    "spouse": r"marr|wife|husband|wed|spouse", "capital": r"capital", "residence": r"(liv|resid|home)[^.]*@",
    "father": r"(father|son|daughter|child|born)", "mother": r"(mother|son|daughter|child|born)",
    "owned by": r"own|subsidiary|acqui|bought|division", "producer": r"produc", "composer": r"compos|music|score",
    "author": r"writ|wrote|author|novel|book|poem|play|@'s", "founded by": r"found|establish|creat|start|form",
    "cast member": r"star|featur|cast|play|appear|role|act", "record label": r"label|releas|record|sign",
    "creator": r"creat", "screenwriter": r"writ|wrote|script|screenplay", "developer": r"develop|creat",
    "original network": r"air|broadcast|network|televis|premier|channel", "director": r"direct|film by",
    "publication date": r"releas|publish|came out|(is|was) an? [^.]*@|premier|air", "publisher": r"publish",
    "inception": r"(found|establish|form|creat|start|incorporat|began)[^.,;()]{0,60}@", "production company": r"produc",
    "official language": r"official", "member of sports team": r"play|sign|join",
    "followed by": r"follow|success|next|sequel", "follows": r"follow|success|next|sequel|after|second|third",
    "performer": r"(?<!written )(?<!composed )(?<!produced )(?<!directed )by[^.,]{0,60}@|@'s|recorded",
    "manufacturer": r"manufact|made|built|produc",
    "headquarters location": r"headquart|based|office", "operator": r"operat|run|manag|flown",
    "military branch": r"serv|officer|soldier|join|command|enlist|general|colonel|captain|major|admiral",
    "member of political party": r"", "mouth of the watercourse": r"(flows into|tributary of|empties into) (the )?@",
    "country of citizenship": r"\b(is|was) an?-? (\w+[- ]){0,2}@",
    "located in the administrative territorial entity": r"(?-i:\b(in|at)( the)? ([A-Z][\w ]+, )*@)",
}  # fmt: skip
"""What a sentence holds that states the relation, `@` being the object; without, annotators knew it from elsewhere."""
_PLACES: Final = ("place of birth", "place of death", "residence", "headquarters location", "educated at")


def stated(relation: str, value: str, sentence: str) -> bool:
    """Whether a sentence that names the value states the relation."""
    if not names(sentence, value) or (relation in _PLACES and re.search(r"(an|ish|ese|ch)$", value)):
        return False
    pattern = _STATED.get(relation, "").replace("@", re.escape(value))
    return bool(re.search(pattern, sentence, re.IGNORECASE))
