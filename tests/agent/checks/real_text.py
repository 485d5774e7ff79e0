"""Claims about sentences as encyclopedias and newspapers write them: what must be found, and what must not.

The sentences are our own, about things that everyone can look up.
"""

from typing import Final, NamedTuple


class Example(NamedTuple):
    title: str
    text: str
    claim: str
    found: bool


CURIE: Final = (
    "Marie Curie",
    "Marie Skłodowska Curie (7 November 1867 – 4 July 1934) was a physicist and chemist. She was born in Warsaw and moved"
    " to Paris in 1891, where she studied at the University of Paris. In 1895 she married the French physicist Pierre"
    " Curie. She won the Nobel Prize in Physics in 1903 and the Nobel Prize in Chemistry in 1911.",
)
EIFFEL: Final = (
    "Eiffel Tower",
    "The Eiffel Tower is a lattice tower in Paris, France. It is named after the engineer Gustave Eiffel, whose company"
    " designed and built it from 1887 to 1889. The tower is 330 metres tall and was the tallest structure in the world"
    " until 1930. Nearly seven million people visited it in 2019.",
)
DUNE: Final = (
    "Dune (novel)",
    "Dune is a 1965 science fiction novel by the American author Frank Herbert, originally published as two serials."
    " It won the Hugo Award in 1966. David Lynch directed a film of it in 1984; the novel was not a success at first.",
)
ALIEN: Final = (
    "Alien (film)",
    "Alien is a 1979 science fiction film directed by Ridley Scott and written by Dan O'Bannon. It stars Sigourney Weaver"
    " as Ellen Ripley. The music was composed by Jerry Goldsmith. The film was released on May 25, 1979.",
)
FINLAND: Final = (
    "Finland",
    "Finland is a Nordic country in Northern Europe. Its capital and largest city is Helsinki. Finland declared its"
    " independence from Russia on 6 December 1917. It has a population of about 5.6 million and borders Sweden, Norway and"
    " Russia.",
)
MOZART: Final = (
    "Wolfgang Amadeus Mozart",
    "Wolfgang Amadeus Mozart was born in Salzburg to Leopold Mozart, a violinist. He never studied at a university: his"
    " father taught him. Mozart married Constanze Weber in 1782 and died in Vienna on 5 December 1791, aged thirty-five.",
)
APOLLO: Final = (
    "Apollo 11",
    "Apollo 11 was the first crewed mission that landed on the Moon. Commander Neil Armstrong and Buzz Aldrin landed the"
    " module Eagle on July 20, 1969, while Michael Collins stayed in orbit. They brought back 21.5 kilograms of rock.",
)
AMUNDSEN: Final = (
    "Roald Amundsen",
    "Amundsen reached the South Pole on 14 December 1911, five weeks before Robert Falcon Scott. He disappeared in June"
    " 1928 while he was looking for the airship Italia. His body was never found.",
)
IKEA: Final = (
    "IKEA",
    "IKEA was founded in Sweden in 1943 by Ingvar Kamprad, who was seventeen years old. It has been based in the"
    " Netherlands since 1973. From 1999 to 2009 Anders Dahlvig ran the company; Jesper Brodin has been its head since 2017.",
)
NEWS: Final = (
    "Voters of Basel choose Conradin Cramer",
    "On 7 April 2024 Conradin Cramer was elected president of the government. He replaces Beat Jans, who left for Bern.",
)
TRIPLES: Final = (
    "",
    "Ludwig van Beethoven | place of birth | Bonn\nLudwig van Beethoven | student of | Joseph Haydn\n"
    "Charles Darwin | spouse | Emma Darwin\nKnown alumni | member of | Royal Society",
)
DOUBT: Final = (
    "Vikings in America",
    "Some newspapers wrote that Leif Erikson was born in Norway. Historians deny that he was born in Norway. The claim"
    " that he reached Boston is a hoax.",
)
MATCH: Final = (
    "1954 final",
    "West Germany beat Hungary 3–2 in the final in Bern. Helmut Rahn scored the winning goal in the 84th minute, and about"
    " 60,000 people watched.",
)
BANK: Final = (
    "Ada Lovelace",
    "Augusta Ada King, Countess of Lovelace, known as Ada Lovelace, was the daughter of the poet Lord Byron. In 1833 she"
    " met Charles Babbage, who had designed the Analytical Engine. She wrote the first published program for it.",
)

EXAMPLES: Final = tuple(
    Example(*page, claim, found)
    for page, claims in (
        (CURIE, (
            ("Marie Curie was born in Warsaw.", True),
            ("The birthplace of Marie Curie is Warsaw.", True),
            ("Marie Curie was born in Paris.", False),
            ("Marie Curie died in Warsaw.", False),
            ("Marie Curie was not born in Warsaw.", False),
            ("Marie Curie was born on November 7, 1867.", True),
            ("Marie Curie was born in 1867.", True),
            ("Marie Curie was born on 8 November 1867.", False),
            ("Marie Curie died on 4 July 1934.", True),
            ("Marie Curie died in 1867.", False),
            ("Marie Curie was married to Pierre Curie.", True),
            ("Pierre Curie married Marie Curie in 1895.", True),
            ("Marie Curie married Pierre Curie in 1896.", False),
            ("Marie Curie studied at the University of Paris.", True),
            ("Marie Curie taught at the University of Paris.", False),
            ("Marie Curie won the Nobel Prize in Chemistry in 1911.", True),
            ("Marie Curie won the Nobel Prize in Literature.", False),
        )),
        (EIFFEL, (
            ("The Eiffel Tower is named after Gustave Eiffel.", True),
            ("The Eiffel Tower is 330 metres tall.", True),
            ("The Eiffel Tower is 300 metres tall.", False),
            ("In 2019 nearly 7 million people visited the Eiffel Tower.", True),
            ("In 2018 nearly 7 million people visited the Eiffel Tower.", False),
        )),
        (DUNE, (
            ("Dune was published in 1965.", True),
            ("The author of Dune is Frank Herbert.", True),
            ("Dune was written by David Lynch.", False),
            ("Dune was a success at first.", False),
            ("Frank Herbert wrote Dune in 1966.", False),
        )),
        (ALIEN, (
            ("Ridley Scott directed Alien.", True),
            ("The director of Alien is Ridley Scott.", True),
            ("Alien was directed by Dan O'Bannon.", False),
            ("Sigourney Weaver starred in Alien.", True),
            ("Jerry Goldsmith composed the music of Alien.", True),
            ("Jerry Goldsmith directed Alien.", False),
            ("Alien came out in 1979.", True),
            ("The movie Alien was released on 25 May 1979.", True),
            ("Alien was released on 26 May 1979.", False),
        )),
        (FINLAND, (
            ("The capital of Finland is Helsinki.", True),
            ("Helsinki is the capital of Finland.", True),
            ("The capital of Finland is Oslo.", False),
            ("Finland borders Norway.", True),
            ("Finland has a population of about 5,600,000.", True),
            ("Finland declared its independence from Russia in 1917.", True),
            ("Russia declared its independence from Finland in 1917.", False),
            ("Finland declared its independence from Sweden in 1917.", False),
        )),
        (MOZART, (
            ("Mozart died in Vienna.", True),
            ("Mozart was born in Vienna.", False),
            ("Wolfgang Amadeus Mozart was married to Constanze Weber.", True),
            ("Mozart studied at a university.", False),
            ("Mozart died in 1791, aged 35.", True),
            ("Mozart died in 1791, aged 36.", False),
        )),
        (APOLLO, (
            ("Neil Armstrong landed on the Moon on 20 July 1969.", True),
            ("Apollo 11 brought back 21.5 kilograms of rock.", True),
            ("Apollo 11 brought back 25 kilograms of rock.", False),
            ("Apollo 13 brought back 21.5 kilograms of rock.", False),
        )),
        (AMUNDSEN, (
            ("Roald Amundsen reached the South Pole in December 1911.", True),
            ("Robert Falcon Scott reached the South Pole five weeks before Roald Amundsen.", False),
            ("The body of Roald Amundsen was found.", False),
        )),
        (IKEA, (
            ("IKEA was founded by Ingvar Kamprad.", True),
            ("Ingvar Kamprad founded IKEA in 1943.", True),
            ("IKEA was founded by Anders Dahlvig.", False),
            ("IKEA is headquartered in the Netherlands.", True),
            ("Anders Dahlvig is now the head of IKEA.", False),
            ("Jesper Brodin has headed IKEA since 2017.", True),
            ("Ingvar Kamprad was 17 years old.", True),
        )),
        (NEWS, (
            ("Conradin Cramer was elected in April 2024.", True),
            ("Beat Jans replaces Conradin Cramer.", False),
        )),
        (TRIPLES, (
            ("Beethoven was born in Bonn.", True),
            ("Ludwig van Beethoven was a pupil of Joseph Haydn.", True),
            ("Joseph Haydn was a student of Ludwig van Beethoven.", False),
            ("Emma Darwin was married to Charles Darwin.", True),
        )),
        (DOUBT, (
            ("Leif Erikson was born in Iceland.", False),
            ("Leif Erikson reached Boston.", False),
        )),
        (MATCH, (
            ("West Germany beat Hungary in Bern.", True),
            ("Hungary beat West Germany in Bern.", False),
            ("Helmut Rahn scored the winning goal in the 84th minute.", True),
            ("About sixty thousand people watched the final.", True),
        )),
        (BANK, (
            ("Ada Lovelace was a daughter of Lord Byron.", True),
            ("Charles Babbage designed the Analytical Engine.", True),
            ("Ada Lovelace designed the Analytical Engine.", False),
        )),
    )
    for claim, found in claims
)  # fmt: skip
