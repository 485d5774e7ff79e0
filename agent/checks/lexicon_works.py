"""How English says what is known of films, books, events and papers. Data only; `lexicon` describes the form."""

from typing import Final

from agent.checks.sense import sense

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
