"""Countries and what their people are called. Data only."""

from functools import cache
from typing import Final

_PAIRS: Final = """
america: american | united states: american | u.s: american | usa: american | united kingdom: british
britain: british | uk: british | england: english | scotland: scottish | wales: welsh | ireland: irish
france: french | germany: german | spain: spanish | italy: italian | portugal: portuguese | netherlands: dutch
belgium: belgian | switzerland: swiss | austria: austrian | denmark: danish | sweden: swedish
norway: norwegian | finland: finnish | iceland: icelandic | poland: polish | russia: russian
ukraine: ukrainian | hungary: hungarian | czech republic: czech | slovakia: slovak | romania: romanian
bulgaria: bulgarian | greece: greek | turkey: turkish | serbia: serbian | croatia: croatian
slovenia: slovenian | bosnia: bosnian | albania: albanian | estonia: estonian | latvia: latvian
lithuania: lithuanian | georgia: georgian | armenia: armenian | azerbaijan: azerbaijani | israel: israeli
lebanon: lebanese | syria: syrian | iraq: iraqi | iran: iranian | saudi arabia: saudi | egypt: egyptian
morocco: moroccan | algeria: algerian | tunisia: tunisian | libya: libyan | sudan: sudanese
ethiopia: ethiopian | somalia: somali | kenya: kenyan | uganda: ugandan | tanzania: tanzanian
nigeria: nigerian | ghana: ghanaian | senegal: senegalese | benin: beninese | cameroon: cameroonian
congo: congolese | angola: angolan | zambia: zambian | zimbabwe: zimbabwean | south africa: south african
namibia: namibian | madagascar: malagasy | india: indian | pakistan: pakistani | bangladesh: bangladeshi
sri lanka: sri lankan | nepal: nepalese | china: chinese | taiwan: taiwanese | japan: japanese | korea: korean
south korea: south korean | north korea: north korean | vietnam: vietnamese | thailand: thai
cambodia: cambodian | laos: laotian | malaysia: malaysian | singapore: singaporean | indonesia: indonesian
philippines: filipino | philippines: philippine | mongolia: mongolian | afghanistan: afghan | kazakhstan: kazakh
uzbekistan: uzbek | australia: australian | new zealand: new zealand | canada: canadian | mexico: mexican
cuba: cuban | jamaica: jamaican | haiti: haitian | dominican republic: dominican | puerto rico: puerto rican
guatemala: guatemalan | honduras: honduran | nicaragua: nicaraguan | costa rica: costa rican
panama: panamanian | colombia: colombian | venezuela: venezuelan | ecuador: ecuadorian | peru: peruvian
bolivia: bolivian | chile: chilean | argentina: argentine | argentina: argentinian | uruguay: uruguayan
paraguay: paraguayan | brazil: brazilian | soviet union: soviet | europe: european | asia: asian
africa: african
"""


@cache
def _table() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for pair in _PAIRS.replace("\n", "|").split("|"):
        if ":" in pair:
            country, people = (part.strip() for part in pair.split(":"))
            table.setdefault(country, set()).add(people)
            table.setdefault(people, set()).add(country)
    return {name: frozenset(others) for name, others in table.items()}


def demonyms(name: str) -> frozenset[str]:
    """What a country's people are called, or whose people are called so; folded."""
    return _table().get(name.removeprefix("the "), frozenset())
