"""Claims about short texts of our own, each with what the text says of it: supported, not verified or contradicted.

The people and places are invented. They were written after the rules: at the first try 56 of the 59 were judged as
true and false. A true claim in words that rules cannot match is "not verified", and so is a false one that nothing in the
text contradicts.
"""

from typing import Final, NamedTuple

from agent.checks import State


class Sample(NamedTuple):
    title: str
    text: str
    claim: str
    state: State


S: Final[State] = "supported"
N: Final[State] = "not_verified"
C: Final[State] = "contradicted"

FILM: Final = (
    "The Glass Ferry (film)",
    "The Glass Ferry is a 1962 Norwegian drama film directed, produced and co-written by Aksel Brunvoll. It stars Inga "
    "Tveit, Jon Ravn and the singer Mette Lund. The music was composed by Pål Egge. The film premiered at the Saga "
    "Theatre in Bergen on 4 October 1962.",
)
PAINTER: Final = (
    "Corinne Aubrac",
    "Corinne Marie Aubrac (3 March 1871, Dinan – 19 August 1940, Geneva) was a French painter and engraver. She was the "
    "daughter of the printer Louis Aubrac. Aubrac studied at the Delmas Academy in Rennes and married the physician "
    "Henri Vallon in 1899. Her early landscapes were shown in London in 1903, where critics ignored them.",
)
BAND: Final = (
    "Slow Harbour",
    "Slow Harbour is the second studio album by the Canadian band Paper Lanterns, released on 9 May 2008 by Birch Records. "
    "It was recorded in a barn near Guelph and sold about 12,000 copies in its first week. The cover shows a lighthouse "
    "that does not exist.",
)
TOWN: Final = (
    "Lower Asker",
    "Lower Asker is a town in Wendle County, in the south of the state of Aurelia. It was founded by Quaker families in "
    "1794 and had 8,412 inhabitants in 2010. The Asker flows into the River Tamble below the town. A fire destroyed the "
    "old market hall in 1911; the present hall was built two years later.",
)
FIRM: Final = (
    "Hollis & Pryce",
    "Hollis & Pryce was a British maker of steam wagons. The company was established in Derby in 1888 by Edwin Hollis and "
    "Samuel Pryce. It employed four hundred people at its height. In 1926 it was bought by Marlow Motors, which closed the "
    "works in 1931.",
)

CLAIMS: Final[tuple[tuple[tuple[str, str], tuple[tuple[str, State], ...]], ...]] = (
    (FILM, (
        ("The Glass Ferry, director: Aksel Brunvoll", S),
        ("The Glass Ferry, producer: Aksel Brunvoll", S),
        ("The Glass Ferry, composer: Pål Egge", S),
        ("The Glass Ferry, publication date: 4 October 1962", S),
        ("The Glass Ferry, publication date: 4 October 1963", C),
        ("The Glass Ferry, cast member: Mette Lund", S),
        ("The Glass Ferry, director: Jon Ravn", N),
        ("Aksel Brunvoll, director: The Glass Ferry", C),
        ("The Glass Ferry: Inga Tveit", S),
        ("The Glass Ferry: Liv Holm", N),
        ("The director of The Glass Ferry is Aksel Brunvoll.", S),
        ("The Glass Ferry was directed by Mette Lund.", N),
        ("The Glass Ferry features Inga Tveit.", S),
        ("The movie premiered at the Saga Theatre in Bergen.", S),
        ("The movie premiered at the Saga Theatre in Oslo.", C),
    )),
    (PAINTER, (
        ("Corinne Aubrac, date of birth: 3 March 1871", S),
        ("Corinne Aubrac, date of death: 19 August 1940", S),
        ("Corinne Aubrac, date of death: 3 March 1871", C),
        ("Corinne Aubrac, place of birth: Dinan", S),
        ("Corinne Aubrac, place of death: Geneva", S),
        ("Corinne Aubrac, place of birth: Geneva", N),
        ("Corinne Aubrac, country of citizenship: French", S),
        ("Corinne Aubrac, country of citizenship: France", S),
        ("Corinne Aubrac, country of citizenship: Swiss", N),
        ("Corinne Aubrac, father: Louis Aubrac", S),
        ("Louis Aubrac was a child of Corinne Aubrac.", C),
        ("Corinne Aubrac, educated at: Delmas Academy", S),
        ("Corinne Aubrac, spouse: Henri Vallon", S),
        ("Corinne Aubrac married Henri Vallon in 1898.", C),
        ("Corinne Aubrac was not a French painter.", C),
        ("Corinne Aubrac: 1903", S),
        ("Corinne Aubrac: 1904", N),
    )),
    (BAND, (
        ("Slow Harbour, performer: Paper Lanterns", S),
        ("Slow Harbour, record label: Birch Records", S),
        ("Slow Harbour is by Paper Lanterns.", S),
        ("Birch Records released Slow Harbour.", S),
        ("Slow Harbour sold roughly 12,000 copies in its first week.", S),
        ("Slow Harbour sold roughly 21,000 copies in its first week.", C),
        ("Slow Harbour was recorded in a church near Guelph.", N),
        ("Slow Harbour came out on 9 May 2008.", S),
        ("The cover of Slow Harbour shows a lighthouse.", S),
        ("Guelph, performer: Paper Lanterns", N),
    )),
    (TOWN, (
        ("Lower Asker lies in Wendle County.", S),
        ("Lower Asker, located in the administrative territorial entity: Aurelia", S),
        ("Lower Asker, inception: 1794", S),
        ("Lower Asker, inception: 1911", C),
        ("In 1911 a fire ruined the old market hall.", S),
        ("A fire did not destroy the old market hall in 1911.", C),
        ("A flood destroyed the old market hall in 1911.", N),
        ("Lower Asker had 8,412 inhabitants in 2010.", S),
        ("Lower Asker had 8,412 inhabitants in 2020.", C),
    )),
    (FIRM, (
        ("Hollis & Pryce, founded by: Samuel Pryce", S),
        ("Hollis & Pryce, inception: 1888", S),
        ("The company was established in Derby.", S),
        ("Marlow Motors acquired Hollis & Pryce in 1926.", S),
        ("Hollis & Pryce bought Marlow Motors in 1926.", C),
        ("At its height the company had a staff of four hundred.", N),
        ("It employed 400 people at its height.", S),
        ("It employed 500 people at its height.", C),
    )),
)  # fmt: skip
SAMPLES: Final = tuple(Sample(*page, claim, state) for page, claims in CLAIMS for claim, state in claims)
