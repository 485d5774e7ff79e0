"""Wordings around the facts: leads, fillers, distractors, and phrases that begin and end a text. Data only."""

from typing import Final

LEADS: Final[dict[str, tuple[str, ...]]] = {
    "person": (
        "{s} is {a}.",
        "{s} is known as {a}.",
        "{s}, {a}, is the subject of this page.",
        "By profession, {s} is {a}.",
        "{s} works as {a}.",
        "{s} has long been active as {a}.",
    ),
    "city": (
        "{s} is a city.",
        "{s} is a town of middling size.",
        "The city of {s} lies on a river.",
        "{s} is an old market town.",
    ),
    "country": ("{s} is a country.", "{s} is a small state.", "{s} is a country with a long coast."),
    "org": (
        "{s} is a company.",
        "{s} is a firm of some standing.",
        "{s} is a private company.",
        "{s} is a family business.",
    ),
    "film": (
        "{s} is a film.",
        "{s} is a feature film.",
        "{s} is a quiet drama for the cinema.",
        "{s} is a film in two parts.",
    ),
    "novel": (
        "{s} is a novel.",
        "{s} is a long novel.",
        "{s} is a novel in three parts.",
        "{s} is a book for the winter.",
    ),
    "event": ("{s} is held once a year.", "{s} is an annual event."),
    "school": ("{s} is a university.", "{s} is an old university.", "{s} is a place of learning."),
}

SECTIONS: Final[dict[str, str]] = {
    "birthplace": "Life", "birth_year": "Life", "spouse": "Family", "mentor": "Training", "studied": "Training",
    "employer": "Career", "country": "Geography", "twin": "Geography", "mayor": "Government", "capital": "Government",
    "city_founded": "History", "org_founded": "History", "school_founded": "History", "founder": "History",
    "head": "Management", "headquarters": "Location", "school_city": "Location", "director": "Production",
    "lead": "Cast", "composer": "Production", "film_released": "Release", "setting": "Plot", "author": "Origin",
    "publisher": "Publication", "novel_published": "Publication",
}  # fmt: skip
"""Relation → the section of a page that it belongs to."""

NOUNS: Final[dict[str, tuple[str, ...]]] = {
    "city": ("the city", "the town", "it"),
    "country": ("the country", "it"),
    "org": ("the company", "the firm", "it"),
    "film": ("the film", "it"),
    "novel": ("the novel", "the book", "it"),
    "event": ("it",),
    "school": ("the university", "it"),
    "paper": ("the paper",),
}
"""What texts call something that was named before."""

FILLERS: Final[dict[str, tuple[str, ...]]] = {
    "person": (
        "Little else has been written down.",
        "Friends describe a patient person with a dry sense of humour.",
        "A collection of letters is kept in a private archive.",
        "The family kept bees for three generations.",
        "An interview of several hours was recorded but never broadcast.",
        "Walking and chess are named as pastimes.",
        "Some details of the early years are lost.",
    ),
    "city": (
        "The market square is paved with river stone.",
        "A tram line crosses the old quarter.",
        "Winters are mild and the summers dry.",
        "The covered market opens on four days a week.",
        "A fire destroyed part of the harbour long ago.",
        "The local dish is a soup of barley and leeks.",
    ),
    "country": ("The coast is rocky.", "Most people live in the valleys.", "Wool and glass are sold abroad."),
    "org": (
        "Its products are sold in many countries.",
        "The company says little about its earnings.",
        "Apprentices are taken on every autumn.",
        "A strike closed the workshops for one summer.",
        "The logo shows a heron.",
    ),
    "film": (
        "Critics praised the light.",
        "It runs for a little over two hours.",
        "The last reel was thought lost and found in a barn.",
        "Audiences were divided about the ending.",
        "Several scenes were shot at night.",
    ),
    "novel": (
        "The story covers four generations of one family.",
        "It has been translated many times.",
        "Reviewers found the middle part slow.",
        "The first edition had a misprint on the title page.",
    ),
    "school": ("The library is open to the public.", "Its botanical garden is small but well kept."),
    "news": (
        "Both sides thanked their supporters.",
        "A short ceremony is planned for next week.",
        "No further details were given.",
        "Neighbours had gathered in the rain to hear the news.",
        "The decision had been expected for some time.",
        "Observers call it a sign of change.",
        "Not everybody was pleased.",
        "The announcement was read out twice.",
    ),
    "paper": (
        "The main result is a bound that does not depend on the dimension.",
        "We show that a simple correction is enough.",
        "The proof is short and uses no special tools.",
        "We discuss where the method fails.",
        "An ablation shows which part matters.",
        "The effect is small but can be measured again and again.",
        "Our estimate holds under mild conditions.",
        "The experiments took four weeks.",
    ),
}

OPENINGS: Final[tuple[str, ...]] = (
    "We study a question that has been open for some time.",
    "Earlier methods need many more samples than there are.",
    "It is well known that the usual estimate breaks down in the tail.",
    "What happens when the noise is not independent?",
    "This short paper corrects a common belief.",
    "We revisit an old experiment with new instruments.",
)
CLOSINGS: Final[tuple[str, ...]] = (
    "We close with three open problems.",
    "Code is available on request.",
    "Further work will look at larger samples.",
    "The appendix has the full tables.",
    "All scripts are public.",
)
"""How abstracts begin and end."""

BACKGROUND: Final[tuple[str, ...]] = (
    "The change ends a period that began in {since}.",
    "{old} had been there since {since}.",
    "It is the first change since {since}.",
    "The arrangement with {old} had lasted since {since}.",
)
"""Of a change: what went before."""

DATELINES: Final[tuple[str, ...]] = ("{day}: ", "{day} — ", "On {day} it became known: ", "Report of {day}. ")

DISTRACTOR_TITLES: Final[tuple[str, ...]] = (
    "Notes from {s}", "Letters about {s}", "A visit: {s}", "{s} in conversation", "What people say about {s}",
    "In brief: {s}", "Reader's question about {s}",
)  # fmt: skip

HEARSAY_TITLES: Final[tuple[str, ...]] = (
    "Forum: {s}", "Does anyone know {s}?", "My memories of {s}", "Trivia about {s}", "{s}, as I remember it",
)  # fmt: skip
HEARSAY_CLOSINGS: Final[tuple[str, ...]] = (
    "Please correct me.",
    "Do not quote me on that.",
    "This was years ago, so take it with a grain of salt.",
    "Unconfirmed, of course.",
    "I have no source for it.",
)

FOLLOW_ANOTHER: Final[tuple[str, ...]] = ("And what about {s}?", "And {s}?", "What about {s}?")
"""The same question again, about another subject."""


def frames() -> list[str]:
    """Every template of this file."""
    tables = (
        *LEADS.values(),
        *FILLERS.values(),
        OPENINGS,
        CLOSINGS,
        BACKGROUND,
        DATELINES,
        DISTRACTOR_TITLES,
        HEARSAY_TITLES,
    )
    return [text for table in (*tables, HEARSAY_CLOSINGS, FOLLOW_ANOTHER) for text in table]
