"""What can be known in the little world, and the several ways of asking for it and of telling it. Data only."""

from dataclasses import dataclass

PROFESSIONS = ("chemist", "painter", "pilot", "singer", "lawyer", "sculptor", "farmer", "surgeon", "poet", "engineer")


@dataclass(frozen=True)
class Relation:
    """One relation of the world.

    `{s}` is the subject, in texts also `{o}` the object.
    """

    name: str
    subject: str
    """Kind of entity that has it."""
    object: str
    """Kind of entity that it leads to; year or word for a plain value."""
    noun: str
    """How plans, merges and evidence call it: "birth year" of somebody."""
    sources: tuple[str, ...]
    """Where it can stand, the most current source last."""
    asks: tuple[str, ...]
    """Whole questions."""
    phrases: tuple[str, ...]
    """Noun phrases that stand for the object inside a longer question."""
    rephrased: tuple[str, ...]
    """Other queries for the same thing."""
    told: tuple[str, ...] = ()
    """Sentences of the subject's own page."""
    news: tuple[str, ...] = ()
    """Headline and text of a dated report; `{old}` is what it replaces, if the relation changes."""

    @property
    def changes(self) -> bool:
        """Whether news can make the page outdated."""
        return len(self.sources) > 1


def _person(name: str, kind: str, noun: str, verb: str, did: str, *, told: tuple[str, ...]) -> Relation:
    return Relation(
        name=name,
        subject=kind,
        object="person",
        noun=noun,
        sources=("web",),
        asks=(f"Who {did} {{s}}?", f"Who is the {noun} of {{s}}?", f"{{s}} was {verb} by whom?"),
        phrases=(f"the {noun} of {{s}}", f"the person who {did} {{s}}"),
        rephrased=(f"who {did} {{s}}", f"{{s}} was {verb} by"),
        told=told,
    )


def _year(name: str, kind: str, noun: str, verb: str, *, told: tuple[str, ...]) -> Relation:
    return Relation(
        name=name,
        subject=kind,
        object="year",
        noun=noun,
        sources=("web",),
        asks=(f"In what year was {{s}} {verb}?", f"When was {{s}} {verb}?", f"What is the {noun} of {{s}}?"),
        phrases=(f"the {noun} of {{s}}",),
        rephrased=(f"when was {{s}} {verb}", f"{{s}} {verb} in the year"),
        told=told,
    )


_ALL = (
    Relation(
        "birthplace", "person", "city", "birthplace", ("web",),
        asks=("Where was {s} born?", "In which city was {s} born?", "What is the birthplace of {s}?"),
        phrases=("the birthplace of {s}", "the city where {s} was born"),
        rephrased=("where was {s} born", "{s} native city"),
        told=("{S} was born in {o}.", "{S} comes from {o}.", "The birthplace is {o}."),
    ),
    _year("birth_year", "person", "birth year", "born",
          told=("The birth year is {o}.", "{S} was born in {o}.", "{S} has lived since {o}.")),
    Relation(
        "employer", "person", "org", "employer", ("web", "news"),
        asks=("Who does {s} now work for?", "Which company now employs {s}?", "What is the current employer of {s}?"),
        phrases=("the current employer of {s}", "the company that now employs {s}"),
        rephrased=("{s} joins new employer", "where does {s} work"),
        told=("As of 2024, {s} works for {o}.", "In 2024 the employer was {o}."),
        news=("{s} joins {o} — After years at {old}, {s} now works for {o}.",
              "New post for {s} — {o} is the new employer of {s}, who leaves {old}."),
    ),
    Relation(
        "spouse", "person", "person", "spouse", ("kg",),
        asks=("Who is {s} married to?", "Who is the spouse of {s}?", "What is the name of the spouse of {s}?"),
        phrases=("the spouse of {s}", "the person married to {s}"),
        rephrased=("who is {s} married to", "{s} spouse"),
    ),
    Relation(
        "mentor", "person", "person", "mentor", ("kg",),
        asks=("Who taught {s}?", "Who is the mentor of {s}?", "Under whom did {s} study?"),
        phrases=("the mentor of {s}", "the person who taught {s}"),
        rephrased=("who taught {s}", "{s} mentor"),
    ),
    Relation(
        "country", "city", "country", "country", ("web",),
        asks=("In which country is {s}?", "What is the country of {s}?", "To which country does {s} belong?"),
        phrases=("the country of {s}",),
        rephrased=("in which country is {s}", "{s} is a city in"),
        told=("{s} is a city in {o}.", "{s} lies in {o}.", "{s} is a town in the country of {o}."),
    ),
    Relation(
        "mayor", "city", "person", "mayor", ("web", "news"),
        asks=("Who is now the mayor of {s}?", "Who is the current mayor of {s}?", "Who now leads {s} as mayor?"),
        phrases=("the current mayor of {s}", "the person who is now mayor of {s}"),
        rephrased=("new mayor of {s} elected", "who is mayor of {s}"),
        told=("As of 2024, the mayor is {o}.", "In 2024 {o} was mayor."),
        news=("{s} elects a mayor — {o} is the new mayor of {s} and follows {old}.",
              "Change in {s} — {old} is out; the city has {o} as its new mayor."),
    ),
    _year("city_founded", "city", "founding year", "founded",
          told=("It was founded in {o}.", "The founding year is {o}.")),
    Relation(
        "twin", "city", "city", "twin city", ("kg",),
        asks=("What is the twin city of {s}?", "Which city is twinned with {s}?", "{s} is a twin of which city?"),
        phrases=("the twin city of {s}", "the city twinned with {s}"),
        rephrased=("which city is twinned with {s}", "{s} twin city"),
    ),
    _person("founder", "org", "founder", "founded", "founded",
            told=("{s} is a company founded by {o}.", "{o} founded the company {s}.", "{s} was started by {o}.")),
    Relation(
        "head", "org", "person", "head", ("web", "news"),
        asks=("Who is now the head of {s}?", "Who now runs {s}?", "Who is the current head of {s}?"),
        phrases=("the current head of {s}", "the person who now runs {s}"),
        rephrased=("new head of {s} named", "who runs {s}"),
        told=("As of 2024, the head is {o}.", "In 2024 {o} was head of the company."),
        news=("{s} has a new head — The board named {o} as head of {s} in place of {old}.",
              "{o} takes over {s} — {old} hands the company to {o}, its new head."),
    ),
    Relation(
        "headquarters", "org", "city", "headquarters", ("web", "news"),
        asks=("Where is {s} now based?", "In which city are the current headquarters of {s}?",
              "What city is now home to {s}?"),
        phrases=("the city where {s} is now based", "the city of the current headquarters of {s}"),
        rephrased=("{s} moves its headquarters", "where is {s} based"),
        told=("As of 2024, its headquarters are in {o}.", "In 2024 it was based in {o}."),
        news=("{s} moves — {s} leaves {old} and has its new headquarters in {o}.",
              "New home for {s} — The headquarters of the company are now in {o}, no longer in {old}."),
    ),
    _year("org_founded", "org", "founding year", "founded",
          told=("It was founded in {o}.", "The founding year is {o}.")),
    _person("director", "film", "director", "directed", "directed",
            told=("{s} is a film by {o}.", "{s} is a film directed by {o}.", "{o} is the director of the film {s}.")),
    _person("lead", "film", "lead actor", "led", "had the lead in",
            told=("The lead actor is {o}.", "It stars {o}.", "{o} has the lead.")),
    _year("film_released", "film", "release year", "released",
          told=("It was released in {o}.", "The release year is {o}.")),
    Relation(
        "setting", "film", "city", "setting", ("kg",),
        asks=("In which city is {s} set?", "What is the setting of {s}?", "Where does the story of {s} take place?"),
        phrases=("the setting of {s}", "the city in which {s} is set"),
        rephrased=("in which city is {s} set", "{s} setting"),
    ),
    _person("author", "novel", "author", "written", "wrote",
            told=("{s} is a novel by {o}.", "{s} is a novel written by {o}.", "{o} is the author of the novel {s}.")),
    _year("novel_published", "novel", "publication year", "published",
          told=("It was published in {o}.", "The publication year is {o}.")),
    Relation(
        "host", "event", "city", "host city", ("news",),
        asks=("Where was {s} held?", "Which city was host of {s}?", "In which city did {s} take place?"),
        phrases=("the host city of {s}", "the city where {s} was held"),
        rephrased=("where was {s} held", "{s} opens in"),
        news=("{s} opens — {o} is the host city of {s}.", "{s} begins — Guests came to {o}, where {s} was held."),
    ),
    Relation(
        "winner", "event", "person", "winner", ("news",),
        asks=("Who won {s}?", "Who was the winner of {s}?", "{s} was won by whom?"),
        phrases=("the winner of {s}", "the person who won {s}"),
        rephrased=("who won {s}", "{s} goes to"),
        news=("{s} goes to {o} — {o} is the winner of {s}.", "{o} wins — The jury of {s} chose {o}."),
    ),
    Relation(
        "first_author", "paper", "person", "first author", ("arxiv",),
        asks=("Who is the first author of {s}?", "Who was the lead writer of the paper {s}?",
              "Which person is the first author of the paper {s}?"),
        phrases=("the first author of {s}", "the lead writer of the paper {s}"),
        rephrased=("who wrote the paper {s}", "{s} authors"),
        told=("{o} is the first author.", "{o} leads the list of authors.", "First author: {o}."),
    ),
    Relation(
        "institute", "paper", "org", "institute", ("arxiv",),
        asks=("At which company was {s} written?", "What is the institute of the paper {s}?",
              "Where was the work of {s} done?"),
        phrases=("the company where {s} was written", "the institute of the paper {s}"),
        rephrased=("{s} written at", "{s} institute of the authors"),
        told=("The work was done at {o}.", "The institute is {o}.", "Written at {o}."),
    ),
    Relation(
        "data", "paper", "word", "data set", ("arxiv",),
        asks=("On which data set is {s} tested?", "What is the data set of the paper {s}?",
              "Which data set does {s} use?"),
        phrases=("the data set of {s}",),
        rephrased=("{s} tested on data set", "{s} data"),
        told=("We test on the {o} data set.", "The data set is {o}.", "All tests use {o} data."),
    ),
)  # fmt: skip

RELATIONS: dict[str, Relation] = {relation.name: relation for relation in _ALL}


@dataclass(frozen=True)
class Listing:
    """A relation from one to many, told as one list."""

    name: str
    subject: str
    source: str
    noun: str
    """As plans, merges and evidence call it: "people born in" Tarnton."""
    rephrased: str
    told: tuple[str, ...]
    clause: str
    """As a condition in a question."""


LISTINGS: dict[str, Listing] = {
    listing.name: listing
    for listing in (
        Listing("natives", "city", "web", "people born in", "natives of {s}",
                ("People born in {s} are {o}.", "The list of people born in {s}: {o}."), "was born in {s}"),
        Listing("members", "society", "kg", "members of", "who belongs to {s}", (), "is a member of {s}"),
        Listing("films_by", "person", "web", "films by", "what did {s} direct",
                ("The films by {s} are {o}.", "All films by {s}: {o}."), "was directed by {s}"),
        Listing("films_set", "city", "kg", "films set in", "{s} as setting", (), "is set in {s}"),
    )
}  # fmt: skip
