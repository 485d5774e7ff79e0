"""Pages as they are on the web, written for these tests: an article among its clutter, a table, a PDF, a bad one."""

import zlib

STORY = [
    "The lighthouse on Skerry Point was built in 1871 by the engineer Maud Ferrant, who had never seen the sea.",
    "Its lamp burned rape-seed oil until 1903, when the harbour board paid for a paraffin burner from Bergen.",
    "In the storm of November 1911 the warden, Anders Vold, kept the light going by hand for thirty-one hours.",
    "A museum has stood in the warden's house since 1984; it shows the log-books and the first lens.",
]
ADVERT = "Buy cheap mattresses now and save 70 percent"
COOKIES = "We value your privacy and use cookies to improve your experience"

ARTICLE = f"""<!DOCTYPE html>
<html lang="en-GB"><head><meta charset="utf-8"><title>The lighthouse on Skerry Point | Coast Weekly</title>
<meta property="og:title" content="The lighthouse on Skerry Point">
<meta property="article:published_time" content="2021-06-14T08:00:00Z">
<script>var tracking = "do not show me";</script><style>p {{ color: red }}</style></head>
<body><header><nav><ul><li><a href="/">Home</a></li><li><a href="/shop">Shop</a></li><li><a href="/login">Log in</a></li>
</ul></nav></header>
<div class="cookie-banner" id="cookie-consent"><p>{COOKIES}</p><button>Accept</button></div>
<main><article><h1>The lighthouse on Skerry Point</h1>
{"".join(f"<p>{paragraph}</p>" for paragraph in STORY)}
</article></main>
<aside class="advert sidebar"><a href="https://ads.example.net/">{ADVERT}</a></aside>
<footer><p>Imprint</p><a href="/privacy">Privacy</a></footer></body></html>"""

TABLE = """<html lang="de"><head><title>Leuchttürme</title></head><body><article><h1>Leuchttürme</h1>
<p>Diese Liste nennt die Leuchttürme der Küste, ihre Höhe und das Jahr, in dem sie gebaut wurden, nach Norden geordnet.</p>
<table><tr><th>Name</th><th>Höhe</th><th>Jahr</th></tr><tr><td>Skerry Point</td><td>31 m</td><td>1871</td></tr>
<tr><td>Rote Klippe</td><td>24 m</td><td>1902</td></tr></table></article></body></html>"""

BROKEN = (
    "<html><head><title>Broken</title><body><div><p>" + STORY[0] + "<p><b>" + STORY[1] + "</i></div></div><p>" + STORY[2]
    + "<table><tr><td>" + STORY[3] + "<!-- never closed "
)  # fmt: skip

BOXES = f"""<html><body><aside class="sidebar"><p>{ADVERT}.</p></aside><main><h1>Skerry Point</h1>
{"".join(f"<p>{paragraph}</p>" for paragraph in STORY)}
<aside class="admonition"><p>Warning: the stairs are steep.</p></aside><aside>Closed in winter.</aside>
<aside class="footnote-list"><aside class="footnote"><span>1</span><p>The log-book of 1911.</p></aside></aside>
<figure><img src="lens.png"><figcaption>Figure 1: the <b>first</b> lens.</figcaption></figure>
<figure class="highlight"><pre><code>cairn ask
cairn serve</code></pre></figure>
<form action="/visit"><p>Visits are on Sundays.</p><input name="day"></form>
<p>It gives off 10<sup>6</sup> candela and no CO<sub>2</sub>.</p></main></body></html>"""
"""Notes, figures and a form in the text, and a bar beside it."""
BOX_LINES = [
    "Warning: the stairs are steep.",
    "Closed in winter.",
    "The log-book of 1911.",
    "Figure 1: the first lens.",
    "cairn serve",
    "Visits are on Sundays.",
    "It gives off 10⁶ candela and no CO2.",
]


def nested(depth: int) -> bytes:
    """Markup that takes a parser seconds or minutes."""
    return b"<html><body>" + b"<div>" * depth + b"deep " * 60 + b"</div>" * depth + b"</body></html>"


def pdf(*pages: str, title: str = "", packed: bool = True) -> bytes:
    """A small, valid PDF: each page one line of Helvetica."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids: list[int] = []
    for text in pages:
        stream = b"BT /F1 12 Tf 20 100 Td (" + text.encode("latin-1") + b") Tj ET"
        extra = b""
        if packed:
            stream, extra = zlib.compress(stream), b" /Filter /FlateDecode"
        objects.append(b"<< /Length %d%s >>\nstream\n%s\nendstream" % (len(stream), extra, stream))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 200] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
        kids.append(len(objects))
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), b" ".join(b"%d 0 R" % kid for kid in kids))
    objects.append(b"<< /Title (%s) >>" % title.encode("latin-1"))
    out = bytearray(b"%PDF-1.4\n")
    places: list[int] = []
    for number, content in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    xref = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer\n<< /Size %d /Root 1 0 R /Info %d 0 R >>\n" % (len(objects) + 1, len(objects))
    return bytes(out) + b"startxref\n%d\n%%%%EOF\n" % xref
