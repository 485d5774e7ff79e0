"""Countries and what their people are called, as articles write them."""

from typing import Final

from train.evaluation.normalisations import squad

_NAMES: Final = """
Afghanistan:Afghan|Albania:Albanian|Algeria:Algerian|Argentina:Argentine,Argentinian|Armenia:Armenian
Australia:Australian|Austria:Austrian|Azerbaijan:Azerbaijani|Bangladesh:Bangladeshi|Belarus:Belarusian
Belgium:Belgian|Bolivia:Bolivian|Bosnia and Herzegovina:Bosnian|Brazil:Brazilian|Bulgaria:Bulgarian
Cambodia:Cambodian|Cameroon:Cameroonian|Canada:Canadian|Chile:Chilean|China:Chinese|Colombia:Colombian
Costa Rica:Costa Rican|Croatia:Croatian|Cuba:Cuban|Cyprus:Cypriot|Czech Republic:Czech|Denmark:Danish
Ecuador:Ecuadorian|Egypt:Egyptian|England:English|Estonia:Estonian|Ethiopia:Ethiopian|Finland:Finnish|France:French
Georgia:Georgian|Germany:German|Ghana:Ghanaian|Greece:Greek|Guatemala:Guatemalan|Hong Kong:|Hungary:Hungarian
Iceland:Icelandic|India:Indian|Indonesia:Indonesian|Iran:Iranian|Iraq:Iraqi|Ireland:Irish|Israel:Israeli
Italy:Italian|Jamaica:Jamaican|Japan:Japanese|Jordan:Jordanian|Kazakhstan:Kazakhstani|Kenya:Kenyan|Latvia:Latvian
Lebanon:Lebanese|Lithuania:Lithuanian|Malaysia:Malaysian|Mali:Malian|Malta:Maltese|Mexico:Mexican|Mongolia:Mongolian
Morocco:Moroccan|Nepal:Nepalese|Netherlands:Dutch|New Zealand:|Nigeria:Nigerian|Norway:Norwegian|Pakistan:Pakistani
Panama:Panamanian|Paraguay:Paraguayan|Peru:Peruvian|Philippines:Filipino|Poland:Polish|Portugal:Portuguese
Romania:Romanian|Russia:Russian|Saudi Arabia:Saudi|Scotland:Scottish|Senegal:Senegalese|Serbia:Serbian
Singapore:Singaporean|Slovakia:Slovak|Slovenia:Slovenian,Slovene|South Africa:South African
South Korea:South Korean|Spain:Spanish|Sri Lanka:Sri Lankan|Sweden:Swedish|Switzerland:Swiss|Syria:Syrian
Taiwan:Taiwanese|Tanzania:Tanzanian|Thailand:Thai|Tunisia:Tunisian|Turkey:Turkish|Uganda:Ugandan|Ukraine:Ukrainian
United Kingdom:British|United States:American|Uruguay:Uruguayan|Venezuela:Venezuelan|Vietnam:Vietnamese|Wales:Welsh
"""
_PAIRS: Final = [entry.partition(":") for line in _NAMES.split("\n") for entry in line.split("|") if entry]
COUNTRIES: Final = tuple(country for country, _, _ in _PAIRS)
NATIONALITIES: Final = {name: country for country, _, names in _PAIRS for name in names.split(",") if name}
"""Nationality → country."""


def country_of(name: str) -> str:
    """The country of a nationality or of itself; any other name as it is."""
    plain = {"U.S.": "United States", "USA": "United States", "America": "United States", "UK": "United Kingdom"}
    return NATIONALITIES.get(name, plain.get(name, name))


def same_value(one: str, other: str) -> bool:
    """Whether two values are the same, or a country and what its people are called."""
    return squad(country_of(one)) == squad(country_of(other))
