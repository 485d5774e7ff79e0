"""More examples of the same kind, written after the rules and run once before the rules were corrected by them.

At that first try 51 of 64 were right: 25 of the 26 false claims were not found, and 26 of the 38 true ones were.
"""

from typing import Final

from tests.agent.checks.real_text import Example

NILE: Final = (
    "Nile",
    "The Nile is a major river in northeastern Africa. With a length of about 6,650 kilometres it is "
    "among the longest rivers of the world. Its two main tributaries, the White Nile and the Blue Nile, "
    "meet at Khartoum, the capital of Sudan. The Aswan High Dam, completed in 1970, ended the yearly "
    "floods in Egypt.",
)
NOKIA: Final = (
    "Nokia",
    "Nokia Corporation was founded in 1865 by Fredrik Idestam as a pulp mill. The company, which is "
    "headquartered in Espoo, sold its phone business to Microsoft in April 2014. Pekka Lundmark was chief "
    "executive from 2020 until 2025, when Justin Hotard succeeded him. Nokia does not make phones any "
    "more.",
)
KAHLO: Final = (
    "Frida Kahlo",
    "Frida Kahlo (6 July 1907 – 13 July 1954) was a Mexican painter known for her self-portraits. At the "
    "age of eighteen she was badly hurt in a bus accident. She married the muralist Diego Rivera in 1929; "
    "they divorced in 1939 and remarried a year later. Kahlo never had children. She died in her home in "
    "Coyoacán.",
)
PENICILLIN: Final = (
    "Penicillin",
    "Penicillin was discovered in 1928 by the Scottish physician Alexander Fleming. Howard Florey and "
    "Ernst Chain, who shared the Nobel Prize with Fleming in 1945, turned it into a medicine. Florey was "
    "born in Adelaide.",
)
EVEREST: Final = (
    "Mount Everest",
    "Mount Everest is the highest mountain above sea level. Its summit is 8,849 metres high. Edmund "
    "Hillary and Tenzing Norgay reached the top on 29 May 1953. Reinhold Messner climbed it alone in "
    "1980, without bottled oxygen.",
)
GUERNICA: Final = (
    "Guernica (Picasso)",
    "Guernica is a large oil painting by Pablo Picasso. He painted it in Paris in 1937 after the town of "
    "Guernica was bombed by German planes. It hangs in the Museo Reina Sofía in Madrid. Until 1981 it was "
    "kept in New York.",
)
JAVA: Final = (
    "Java (programming language)",
    "Java was designed by James Gosling at Sun Microsystems and released in May 1995. Oracle bought Sun "
    "Microsystems in 2010. Java is not related to JavaScript.",
)
FINAL: Final = (
    "2018 final",
    "France defeated Croatia 4–2 in Moscow on 15 July 2018. Antoine Griezmann was named man of the match. "
    "Luka Modrić received the Golden Ball. The referee was Néstor Pitana of Argentina.",
)
BACH: Final = (
    "Johann Sebastian Bach",
    "Bach was born in Eisenach in 1685, the youngest of eight children. After the death of his parents he "
    "lived with his brother Johann Christoph. In 1723 he became cantor in Leipzig, where he remained "
    "until his death in 1750. His son Carl Philipp Emanuel was also a composer.",
)
PAPER: Final = (
    "Proteins at low temperature",
    "We test on the Arctic data set. The work was done at the University of Tromsø. Kari Holm is the first author.",
)

EXAMPLES: Final = tuple(
    Example(*page, claim, found)
    for page, claims in (
        (NILE, (
            ("The White Nile and the Blue Nile meet at Khartoum.", True),
            ("Khartoum is the capital of Sudan.", True),
            ("Khartoum is the capital of Egypt.", False),
            ("The Nile is about 6,650 kilometres long.", True),
            ("The Nile has a length of about 6,650 km.", True),
            ("The Aswan High Dam was completed in 1970.", True),
            ("The Aswan High Dam was completed in 1960.", False),
            ("The Blue Nile and the White Nile meet at Cairo.", False),
            ("The Aswan High Dam did not end the yearly floods in Egypt.", False),
        )),
        (NOKIA, (
            ("Nokia was founded in 1865.", True),
            ("Fredrik Idestam founded Nokia.", True),
            ("The headquarters of Nokia are in Espoo.", True),
            ("Nokia sold its phone business to Microsoft in 2014.", True),
            ("Microsoft sold its phone business to Nokia in 2014.", False),
            ("Nokia bought a phone business from Microsoft.", False),
            ("Pekka Lundmark is now the chief executive of Nokia.", False),
            ("Pekka Lundmark was chief executive of Nokia from 2020 until 2025.", True),
            ("Nokia makes phones.", False),
            ("Fredrik Idestam was chief executive of Nokia.", False),
        )),
        (KAHLO, (
            ("Frida Kahlo was born on 6 July 1907.", True),
            ("Frida Kahlo died in 1954.", True),
            ("Diego Rivera was the husband of Frida Kahlo.", True),
            ("Frida Kahlo married Diego Rivera in 1929.", True),
            ("Frida Kahlo married Diego Rivera in 1939.", False),
            ("Frida Kahlo had children.", False),
            ("Frida Kahlo never had children.", True),
            ("Frida Kahlo died in Coyoacán.", True),
            ("Frida Kahlo was born in Coyoacán.", False),
            ("At 18 Frida Kahlo was hurt in a bus accident.", True),
            ("Frida Kahlo was a Spanish painter.", False),
        )),
        (PENICILLIN, (
            ("Alexander Fleming discovered penicillin in 1928.", True),
            ("Penicillin was discovered by Ernst Chain.", False),
            ("Howard Florey was born in Adelaide.", True),
            ("Ernst Chain was born in Adelaide.", False),
            ("Howard Florey shared the Nobel Prize with Fleming in 1945.", True),
        )),
        (EVEREST, (
            ("Mount Everest is 8,849 metres high.", True),
            ("Mount Everest is 8,489 metres high.", False),
            ("Tenzing Norgay reached the top of Mount Everest in 1953.", True),
            ("Reinhold Messner reached the top of Mount Everest in 1953.", False),
            ("Reinhold Messner climbed Mount Everest alone in 1980.", True),
            ("Reinhold Messner climbed Mount Everest with bottled oxygen.", False),
        )),
        (GUERNICA, (
            ("Pablo Picasso painted Guernica in 1937.", True),
            ("Guernica hangs in Madrid.", True),
            ("Guernica hangs in New York.", False),
            ("Guernica was painted in Madrid.", False),
            ("German planes bombed the town of Guernica.", True),
        )),
        (JAVA, (
            ("James Gosling designed Java.", True),
            ("Oracle bought Sun Microsystems in 2010.", True),
            ("Sun Microsystems bought Oracle in 2010.", False),
            ("Java is related to JavaScript.", False),
            ("Java was released in 1995.", True),
        )),
        (FINAL, (
            ("France defeated Croatia in Moscow.", True),
            ("Croatia defeated France in Moscow.", False),
            ("Croatia was defeated by France.", True),
            ("Luka Modrić received the Golden Ball.", True),
            ("Antoine Griezmann received the Golden Ball.", False),
        )),
        (BACH, (
            ("Johann Sebastian Bach was born in Eisenach.", True),
            ("Bach was born in Leipzig.", False),
            ("Johann Sebastian Bach died in 1750.", True),
            ("Carl Philipp Emanuel was a son of Johann Sebastian Bach.", True),
            ("Bach became cantor in Leipzig in 1723.", True),
            ("Bach had eight children.", False),
        )),
        (PAPER, (
            ("The first author of Proteins at low temperature is Kari Holm.", True),
            ("Proteins at low temperature is tested on the Arctic data set.", True),
        )),
    )
    for claim, found in claims
)  # fmt: skip
