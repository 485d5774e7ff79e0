"""Words that the checks know by form: function words, negations, months, number words, irregular verbs. Data only."""

from typing import Final


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTION: Final = _set(
    "a an the and or but nor of in on at to for from by with as into than then that this these those it its he she his"
    " her him they them their we our us i my you your who whom whose which what when where while there here also too"
    " is are was were be been being am has have had having do does did will would can could may might shall should must"
    " s if so such both each all any some other others during after before since until till between about over under"
    " through against among within via per up out off only just very most more much many still yet already even"
    " one ones own same respectively currently current now today present presently former formerly once ago"
    " according later first"
)
"""Words that say little of what is claimed."""
PRONOUNS: Final = _set("he she it they we i his her its their hers theirs him them who which whom whose that this")
AUXILIARY: Final = _set("is are was were be been being am has have had do does did will would can could may might")
BE: Final = _set("is are was were be been being am remains remained became becomes")
ARTICLES: Final = _set("the a an")
PREPOSITIONS: Final = _set(
    "of in on at to for from by with as into since until till between during after before under near"
    " against about over through via among within without"
)
CONJUNCTIONS: Final = _set("and but or while whereas although though")
NEGATIONS: Final = _set(
    "not no never none neither nor without cannot can't isn't wasn't aren't weren't doesn't don't didn't hasn't haven't"
    " hadn't won't wouldn't couldn't nobody nowhere except excluding excludes excluded"
)
UNTRUE: Final = _set("false untrue wrong")
"""They negate what follows, "a false alarm", "it is false that …"; but "debug is false" says what it is."""
EVERY: Final = _set("everyone everybody everything anything all every each")
DENIALS: Final = _set(
    "denied denies deny refused refuses refuse failed fails declined rejected refuted disputed contrary myth mistakenly"
    " wrongly incorrectly falsely erroneously unlikely hoax"
)
"""Words that take back what follows."""
ENDED: Final = _set(
    "left leaves leave replaced replaces replace lost loses lose resigned retired quit out former formerly previously"
    " ex departed succeeded"
)
MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
            "september sep sept", "october oct", "november nov", "december dec",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
ABBREVIATIONS: Final = tuple(
    "Mr Mrs Ms Dr St Jr Sr No vs Prof Gen Col Sgt Lt Capt Rev Gov Sen Rep Mt Ft Vol c ca approx pp e.g i.e Jan Feb Mar"
    " Apr Jun Jul Aug Sep Sept Oct Nov Dec".split()
)
"""A stop behind one of these ends no sentence."""

UNITS: Final = {
    word: value
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
        " seventeen eighteen nineteen".split()
    )
}
TENS: Final = {
    word: 10 * value
    for value, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2)
}
SCALES: Final = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
SCALES_SHORT: Final = {"m": 10**6, "mn": 10**6, "bn": 10**9, "k": 1000}
ORDINALS: Final = {
    "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10,
    "eleventh": 11, "twelfth": 12, "thirteenth": 13, "fourteenth": 14, "fifteenth": 15, "sixteenth": 16,
    "seventeenth": 17, "eighteenth": 18, "nineteenth": 19, "twentieth": 20,
}  # fmt: skip

PLACE_MARKS: Final = _set(
    "east west north south new old port san santa saint st fort mount lake upper lower great little el los las la le"
    " central northern southern eastern western"
)
"""With one of these before it, a name is another name: Trenholm is not East Trenholm."""
SHORT: Final = {
    short: names.split()[0]
    for names in (
        "unitedstates us usa unitedstatesofamerica america", "unitedkingdom uk greatbritain britain",
        "sovietunion ussr", "europeanunion eu", "unitednations un", "newyork newyorkcity", "losangeles la",
        "worldwari firstworldwar wwi", "worldwarii secondworldwar wwii",
    )
    for short in names.split()
}  # fmt: skip
"""Names in one word → the one that stands for all of them."""
NAME_TAILS: Final = _set(
    "inc corp corporation ltd limited co company gmbh ag plc llc group sa jr sr ii iii iv film novel"
)
"""A name with or without one of these at its end is the same."""
NAME_LINKS: Final = _set("of the de da di du del della des van von der den la le el al bin ibn and y e zu af")
HONORIFICS: Final = _set("mr mrs ms dr sir dame lord lady prof professor st saint king queen prince princess president")

_FORMS = """
be: is are was were been being am | have: has had having | do: does did done | write: wrote written writing
see: saw seen | teach: taught | win: won winning wins | lead: led | run: ran running | make: made making
shoot: shot | hold: held | take: took taken taking | give: gave given giving | go: went gone | come: came coming
leave: left leaving | choose: chose chosen choosing | sell: sold | build: built | buy: bought | begin: began begun
die: died dying dies | lie: lay lain lying lies | sit: sat | stand: stood | spend: spent | send: sent | keep: kept
draw: drew drawn | sing: sang sung | fight: fought | fall: fell fallen | grow: grew grown | know: knew known
lose: lost losing | meet: met | pay: paid | rise: rose risen | speak: spoke spoken | become: became | find: find
wed: wedded | set: setting | bear: bore | tell: told | say: said | get: got gotten | bring: brought | put: putting
learn: learnt | sink: sank sunk | wear: wore worn | tie: tying tied ties | found: founded founding founds
star: starred starring stars | marry: married marries marrying marriage | publish: published | child: children
man: men | woman: women | person: people persons | city: cities | country: countries | company: companies
beat: beaten | break: broke broken | drive: drove driven | eat: ate eaten | fly: flew flown | hide: hid hidden
think: thought | understand: understood | hear: heard | feel: felt | show: shown | rebuild: rebuilt | name: named
compose: composed composing composition | direct: directed directing | film: films filmed filming
"""
IRREGULAR: Final = {
    form: base.strip()
    for entry in _FORMS.replace("\n", "|").split("|")
    if ":" in entry
    for base, forms in [entry.split(":")]
    for form in (base.strip(), *forms.split())
}
"""Form → base, where the stemmer would keep them apart or throw them together."""
