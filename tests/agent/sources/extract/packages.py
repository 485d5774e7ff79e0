"""Makes small documents part by part: what a library would never write, too."""

import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import Final

_W: Final = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_S: Final = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_A: Final = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
_P: Final = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
_R: Final = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
_KINDS: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
CHARTS: Final = 'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"'
STRICT: Final = "http://purl.oclc.org/ooxml/"
_NAMES: Final = re.compile(rb"http://schemas\.openxmlformats\.org/(\w+ml|officeDocument)/2006/")
_ODF: Final = "urn:oasis:names:tc:opendocument:xmlns"
_TYPES: Final = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/></Types>'
)

Parts = Mapping[str, str | bytes]


def packed(parts: Parts, *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A ZIP file of these parts."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as package:
        for name, part in parts.items():
            package.writestr(name, part)
    return out.getvalue()


def strict(raw: bytes) -> bytes:
    """An office document with the names that ISO/IEC 29500 Strict gives its elements and relations."""
    with zipfile.ZipFile(io.BytesIO(raw)) as package:
        return packed({name: _NAMES.sub(STRICT.encode() + rb"\1/", package.read(name)) for name in package.namelist()})


def renamed(raw: bytes, name: str, other: str) -> bytes:
    """A package one of whose files has another name, wherever it is named."""
    with zipfile.ZipFile(io.BytesIO(raw)) as package:
        return packed(
            {
                part.replace(name, other): package.read(part).replace(name.encode(), other.encode())
                for part in package.namelist()
            }
        )


def chart(title: str, series: Mapping[str, Mapping[str, str]]) -> str:
    """A chart of bars: name of a series → category → value."""

    def points(texts: Sequence[str]) -> str:
        return "".join(f'<c:pt idx="{at}"><c:v>{text}</c:v></c:pt>' for at, text in enumerate(texts))

    each = "".join(
        f"<c:ser><c:tx><c:strRef><c:strCache>{points([name])}</c:strCache></c:strRef></c:tx>"
        f"<c:cat><c:strRef><c:strCache>{points([*values])}</c:strCache></c:strRef></c:cat>"
        f"<c:val><c:numRef><c:numCache>{points([*values.values()])}</c:numCache></c:numRef></c:val></c:ser>"
        for name, values in series.items()
    )
    said = f"<c:title><c:tx><c:rich><a:p><a:r><a:t>{title}</a:t></a:r></a:p></c:rich></c:tx></c:title>"
    return f"<c:chartSpace {CHARTS} {_A}><c:chart>{said}<c:plotArea><c:barChart>{each}</c:barChart></c:plotArea></c:chart></c:chartSpace>"


def relations(**targets: str) -> str:
    """Id → kind and target, apart by a space."""
    each = (
        f'<Relationship Id="{name}" Type="{_KINDS}/{target.split()[0]}" Target="{target.split()[1]}"/>'
        for name, target in targets.items()
    )
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{"".join(each)}</Relationships>'


def docx_parts(body: str) -> dict[str, str | bytes]:
    return {
        "[Content_Types].xml": _TYPES,
        "_rels/.rels": relations(main="officeDocument word/document.xml"),
        "word/document.xml": f"<w:document {_W} {_R} {_A}><w:body>{body}</w:body></w:document>",
    }


def words(text: str) -> str:
    """A paragraph of Word."""
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def pptx_parts(*slides: str) -> dict[str, str | bytes]:
    """Slides, each as the shapes of it."""
    ids = "".join(f'<p:sldId id="{256 + number}" r:id="s{number}"/>' for number in range(len(slides)))
    names = {f"s{number}": f"slide slides/slide{number}.xml" for number in range(len(slides))}
    return {
        "[Content_Types].xml": _TYPES,
        "_rels/.rels": relations(main="officeDocument ppt/presentation.xml"),
        "ppt/presentation.xml": f"<p:presentation {_P} {_R}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(**names),
        **{
            f"ppt/slides/slide{number}.xml": f"<p:sld {_P} {_A} {_R}><p:cSld><p:spTree>{slide}</p:spTree></p:cSld></p:sld>"
            for number, slide in enumerate(slides)
        },
    }


def shape(text: str, kind: str = "") -> str:
    """A shape of a slide; kind: of placeholder."""
    place = f'<p:ph type="{kind}"/>' if kind else ""
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="1" name="x"/><p:cNvSpPr/><p:nvPr>{place}</p:nvPr></p:nvSpPr><p:spPr/>'
        f"<p:txBody><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
    )


def xlsx_parts(rows: str, *, shared: str = "") -> dict[str, str | bytes]:
    """One sheet, of rows as they are written; shared: strings."""
    return {
        "[Content_Types].xml": _TYPES,
        "_rels/.rels": relations(main="officeDocument xl/workbook.xml"),
        "xl/workbook.xml": f'<workbook {_S} {_R}><sheets><sheet name="Owls" sheetId="1" r:id="s"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relations(
            s="worksheet worksheets/sheet1.xml", t="sharedStrings sharedStrings.xml"
        ),
        "xl/sharedStrings.xml": f"<sst {_S}>{shared}</sst>",
        "xl/worksheets/sheet1.xml": f"<worksheet {_S}><sheetData>{rows}</sheetData></worksheet>",
    }


def cell(place: str, text: str) -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>'


def odf_parts(kind: str, body: str, styles: str = "") -> dict[str, str | bytes]:
    """OpenDocument; kind: text, presentation or spreadsheet."""
    names = {name: name for name in ("office", "text", "table", "style", "presentation")} | {"draw": "drawing"}
    spaces = " ".join(f'xmlns:{short}="{_ODF}:{name}:1.0"' for short, name in names.items())
    return {
        "mimetype": f"application/vnd.oasis.opendocument.{kind}",
        "content.xml": f"<office:document-content {spaces}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:{kind}>{body}</office:{kind}>"
        "</office:body></office:document-content>",
    }


def epub_parts(chapters: Parts, *, spine: Sequence[str] = (), head: str = "") -> dict[str, str | bytes]:
    """A book; spine: names of chapters in another order, head: more metadata."""
    items = "".join(f'<item id="{name}" href="{name}" media-type="application/xhtml+xml"/>' for name in chapters)
    order = "".join(f'<itemref idref="{name}"/>' for name in spine or chapters)
    return {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>',
        "OEBPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf"><metadata '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/">{head}</metadata><manifest>{items}</manifest>'
        f"<spine>{order}</spine></package>",
        **{f"OEBPS/{name}": chapter for name, chapter in chapters.items()},
    }


def chapter(body: str, title: str = "") -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html>\n<html xmlns="http://www.w3.org/1999/xhtml">'
        f"<head><title>{title}</title></head><body>{body}</body></html>"
    )
