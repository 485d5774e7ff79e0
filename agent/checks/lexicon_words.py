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


WORKS: Final = (
    sense(
        "director",
        "director, film director",
        "V directed H, H directed by V, H work of director V, H made by V, V made H, H shot by V, behind camera "
        "stood V, H film|movie by V, H films by V, V stood behind camera of H, V behind camera of H, H filmed by V",
    ),
    sense(
        "producer",
        "producer, film producer",
        "V produced H, H produced by V",
    ),
    sense(
        "screenwriter",
        "screenwriter, scriptwriter",
        "H screenplay|script by V, V wrote screenplay|script of|for H",
    ),
    sense(
        "lead",
        "lead actor, lead actress, star, lead role, main actor, leading actor, leading role",
        "H stars V, V starred in H, V stars in H, H starring V, H gives =lead to V, H shows V in main part, H rests "
        "on shoulders of V, V has =lead, V had =lead in H, main part played by V, V played main|leading part|role "
        "in H, H with V in main|leading part|role, V played main part",
    ),
    sense(
        "composer",
        "composer",
        "V composed H, H composed by V, H music by V, music composed by V, score by V, H score written by V, V "
        "wrote score of|for H, V composed music of|for H, H owes sound to V, H scored by V, V scored H, V composed "
        "music H, music of H composed by V, score of H written by V, music of H by V",
    ),
    sense(
        "performer",
        "performer, singer",
        "V performed H, H performed by V, V sang H, H sung by V, H recorded by V, V recorded H, H song|single|album "
        "by V",
    ),
    sense(
        "released",
        "release year, release date, year of release, release",
        "H released V, H reached cinemas V, H came to public V, H counts among films of V, H among films of V, H "
        "premiered V, H hit cinemas V, H opened V, H came out V, H came to cinemas V",
    ),
    sense(
        "filmed",
        "filming location",
        "filming began V, H filmed V, H shot in|on|at V",
    ),
    sense(
        "setting",
        "setting",
        "H set V, story takes place V, H unfolds V, H unfolds in streets of V, H tells story from V, H story from "
        "V, H streets of V, H plays in V, H takes place in V, story of H takes place V, story of H unfolds V",
    ),
    sense(
        "author",
        "author, writer, novelist",
        "V wrote H, H written by V, H work of author V, H came from pen of V, H from pen of V, pen H came V, H "
        "success of V, V authored H, H authored by V, H novel|book|poem|play|story by V, V penned H, H penned by V, "
        "H novels by V, V pen H",
    ),
    sense(
        "translator",
        "translator",
        "V translated H, H translated by V, H translated V",
    ),
    sense(
        "illustrator",
        "illustrator",
        "V illustrated H, H illustrated by V",
    ),
    sense(
        "editor",
        "editor",
        "V edited H, H edited by V",
    ),
    sense(
        "publisher",
        "publisher, imprint",
        "V published H, H published by V, H brought out by V, V brought out H, H under imprint of V, V brought it "
        "out, H issued by V, V issued H",
    ),
    sense(
        "printer",
        "printer",
        "V printed H, H printed by V, H bound by V",
    ),
    sense(
        "published",
        "publication year, publication date, year of publication, publication",
        "H published V, H appeared in print V, H came to public V, H counts among books of V, H among books of V, H "
        "came out V, H appeared V, H among novels of V, H issued V",
    ),
    sense(
        "host",
        "host city, host, venue",
        "H held V, H took place in|at V, H brought guests to V, guests came to V, V welcomed guests, V hosted H, H "
        "hosted by V, V full H took place, V home to H, V home to, guests of H gathered V, V never so full",
    ),
    sense(
        "winner",
        "winner, champion",
        "V won H, H won by V, H gave medal to V, V took medal of H, V took first place at|in H, jury of H chose V, "
        "H gone to V, H went to V, jury chose V, V took medal, first place at H taken by V, first place for V",
    ),
    sense(
        "runner_up",
        "runner up, finalist",
        "V lost H, V finished second H, V came second H, H lost by V",
    ),
    sense(
        "judge",
        "judge, referee",
        "V judged H, H judged by V",
    ),
    sense(
        "first_author",
        "first author, lead author, lead writer",
        "V leads list of authors, name of V stands first, correspondence goes to V, V wrote first draft, H name of "
        "V at head of list, H written by V as first author, H carries name of V, V stands first",
    ),
    sense(
        "last_author",
        "last author, senior author, second author",
        "",
    ),
    sense(
        "reviewer",
        "reviewer, referee",
        "V reviewed H, H reviewed by V",
    ),
    sense(
        "institute",
        "institute, institution, affiliation",
        "work done at V, H written at V, H paid for by V, measurements made in halls of V, V gave rooms and money, "
        "V gave rooms, V paid for work behind H, V paid for H, H done at V, work of H done at V, V paid for, H "
        "funded by V, V funded H",
    ),
    sense(
        "data",
        "data set, dataset",
        "H tests on V, H tested on V, H uses V, H measured on V, measurements made on V, results given for V, tests "
        "use V, H evaluated on V, H evaluates on V",
    ),
    sense(
        "member",
        "member, membership",
        "H member|members of V, H belongs to V, H joined V, H members of V",
    ),
)
