"""How English says what is known of people and places. Data only; `lexicon` describes the form."""

from typing import Final

from agent.checks.sense import sense

LIFE: Final = (
    sense(
        "birth",
        "birthplace, place of birth, home town, hometown, native city, native town, birth year, year of birth, "
        "birth date, date of birth, birthday, birth",
        "H born in|on|at|near V, H born V, H comes from V, H hails from V, H native of V, H originates from V, H "
        "saw daylight V, H saw light of day V, H came into world V, H lived since V, H alive since V, H generation "
        "of V, H belongs to generation of V, H entered world V, V welcomed H into world, parish register entry "
        "under V",
    ),
    sense(
        "death",
        "place of death, deathplace, death, date of death, death date, year of death",
        "H died V, H passed away V, H killed V, H perished V, H drowned V, H succumbed V, H executed V, H murdered V",
    ),
    sense(
        "death_cause",
        "cause of death",
        "H died of|from V, H succumbed to V",
    ),
    sense(
        "burial",
        "burial place, grave, resting place",
        "H buried V, H interred V, H laid to rest V",
    ),
    sense(
        "residence",
        "residence",
        "H lives in|at|near V, H resides V, H settled V, H dwells V, H moved to V",
    ),
    sense(
        "spouse",
        "spouse, wife, husband, partner in marriage",
        "H married V, H wed V, H wedding with|to V, H exchanged rings with V, H tied knot with V, H marriage "
        "with|to V, H shares marriage with V, V since their wedding, H V exchanged vows, H exchanged vows with V, H "
        "remarried V",
        symmetric=True,
    ),
    sense(
        "divorce",
        "ex wife, ex husband",
        "H divorced V, H separated from V",
        symmetric=True,
    ),
    sense(
        "engaged",
        "fiance, fiancee",
        "H engaged to V, H betrothed to V",
        symmetric=True,
    ),
    sense(
        "father",
        "father, dad",
        "V fathered H, H son|daughter|child of V, H born to V",
    ),
    sense(
        "mother",
        "mother, mum",
        "V mothered H, H son|daughter|child of V, H born to V",
    ),
    sense(
        "parent",
        "parent",
        "H son|daughter|child of V, H born to V, V fathered H",
    ),
    sense(
        "child",
        "child, son, daughter",
        "H fathered V, V born to H",
    ),
    sense(
        "sibling",
        "brother, sister, sibling, twin brother, twin sister",
        "",
        symmetric=True,
    ),
    sense(
        "citizenship",
        "citizenship, nationality, country of citizenship",
        "H citizen|national of V, H naturalized V",
    ),
    sense(
        "mentor",
        "mentor, teacher, tutor, master",
        "V taught H, H taught by V, H studied|trained under|with V, H learned from V, H learned trade from V, H "
        "learned trade V, H pupil of V, H apprentice of|to V, H apprentice in workshop of V, H apprenticed to V, H "
        "student|disciple of V, V mentored H, H mentored by V, lessons from|with V, H trained by V, V trained H",
    ),
    sense(
        "studied",
        "university, alma mater, college, school",
        "H studied at V, H studied V, H went to university|college|school at|in V, H graduated from|at V, H "
        "graduate|alumnus|alumna of V, H degree from|at V, H holds degree from|at V, H spent student years at V, H "
        "educated at V, H attended V, H student at V, H alumni of V, V gave degree H, H enrolled at|in V",
    ),
    sense(
        "taught_at",
        "",
        "H taught at|in V, H lectured at|in V, H professor at|of V, H lecturer at V, H faculty of|at V",
    ),
    sense(
        "expelled",
        "",
        "H expelled from V, H dropped out of V",
    ),
    sense(
        "employer",
        "employer, workplace, place of work",
        "H works for|at V, H employed by|at V, H on staff of V, H on payroll of V, H moved to V stayed, H earned "
        "living at V, H joined V, H post at V, H hired by V, V hired H, V employs H, V pays H, H joins V, V loses H "
        "to, H job at|with V, H position at|with V, loses H to V, left for post at V, H has post at V, H has post "
        "V, year brought post at V",
    ),
    sense(
        "resigned",
        "",
        "H left V, H resigned from V, H quit V, H fired by|from V, H dismissed by|from V, V fired H",
    ),
    sense(
        "owner",
        "owner",
        "V owns H, H owned by V, V bought H, H bought by V, V acquired H, H acquired by V",
    ),
    sense(
        "award",
        "award, award received, prize",
        "H awarded V, H received V, H honoured with V, H recipient of V",
    ),
)

PLACES: Final = (
    sense(
        "country",
        "country, nation",
        "H lies in V, H in country of V, H belongs to V, H part of nation of V, H part of V, H in hills of V, H "
        "flies flag of V, V counts among cities, H situated V, H located V, H city|town|village in V, H lie under "
        "flag of V",
    ),
    sense(
        "capital",
        "capital, capital city, seat of government",
        "H governed from V, H has government in V, H sends members of parliament to V, parliament meets in V, H "
        "government seated in V, government of H seated V, parliament of H meets V, H seat of government in V",
    ),
    sense(
        "borders",
        "neighbour, neighbor",
        "H borders V, H bordered by V, H border with V",
        symmetric=True,
    ),
    sense(
        "largest",
        "largest city, biggest city",
        "",
    ),
    sense(
        "mayor",
        "mayor",
        "V governs H, H governed by V, V runs H, V ran H, H run by V, H led by V, V leads H, V led H, H led by "
        "mayor V, H put V in charge, V in charge of|at H, V runs town hall of H, V in charge, V runs town hall, V "
        "will govern, voters of H choose V, H elected V, V elected, voters chose V, V replaces X at town hall, V "
        "replaced X as mayor, V manages H, H managed by V, H put V in charge of town hall",
    ),
    sense(
        "head",
        "head, director general, boss, manager, leader, managing director",
        "V runs H, V ran H, H run by V, V leads H, V led H, H led by V, H headed by V, V heads H, H managed by V, V "
        "manages H, H put V in charge, V in charge of|at H, V in charge, H hands company to V, company to V, V "
        "takes over H, V took over H, V manages company",
    ),
    sense(
        "ceo",
        "ceo, chief executive, chief executive officer",
        "V heads H, H headed by V, H led by V, V leads H",
    ),
    sense(
        "president",
        "president",
        "V presided over H, H led by V, V leads H, H headed by V",
    ),
    sense(
        "vice",
        "vice president, deputy, deputy mayor, deputy head",
        "",
    ),
    sense(
        "chair",
        "chair, chairman, chairwoman, chairperson",
        "V chairs H, H chaired by V",
    ),
    sense(
        "twin",
        "twin city, twin town, sister city, partner city",
        "H twinned with V, H partnership with V, H twin of V, partnership ties H to V, partnership ties to V, H "
        "exchanges school classes with V, H sister city of V, H signed partnership with V, twinned with V",
        symmetric=True,
    ),
    sense(
        "founder",
        "founder, co founder, cofounder",
        "V founded H, H founded by V, H started by V, V started H, H set up by V, V set up H, H owes existence to "
        "V, H established by V, V established H, H idea of V, V created H, H created by V, V launched H, H launched "
        "by V, H idea of V",
    ),
    sense(
        "founded",
        "founding year, year of foundation, foundation, inception, establishment, year of establishment, founding "
        "date, date of foundation",
        "H founded V, H goes back to V, H existed since V, H traces beginnings to V, H dates from|to|back V, "
        "charter bears V, H established V, H started V, H created V, H set up V, H launched V, H dates V",
    ),
    sense(
        "dissolved",
        "dissolution, closing year, closing",
        "H closed V, H dissolved V, H shut down V, H abolished V",
    ),
    sense(
        "headquarters",
        "headquarters, main office, head office, seat",
        "H based V, H headquartered in V, H took seat in V, headquarters in V, main office opened in V, H main "
        "office V, main office gone from X to V, office moved from X to V, H moved from X to V, H moved to V, "
        "opened one in V, H keeps main office in V, H keeps main office V, V home to H, H located V",
    ),
    sense(
        "location",
        "location, campus, site",
        "H located V, H situated V, H campus in V, H teaches in V, H in barracks of V, campus on edge of V, campus "
        "lies V, H lies in V, H stands in V, V home to H, H has campus in V",
    ),
    sense(
        "population",
        "population, inhabitants",
        "H populated by V",
    ),
)
