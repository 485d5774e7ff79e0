"""Trees of XML and HTML, parsed without entities, without files beside them and without the network."""

import re
from typing import Any, Final, cast

import lxml.etree  # pyright: ignore[reportMissingTypeStubs]

from agent.sources.extract.text import ExtractError

etree: Final = cast(Any, lxml.etree)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
_XML_CODECS: Final = frozenset("utf-8 utf8 us-ascii ascii iso-8859-1 iso-8859-15 windows-1252 utf-16".split())
_NAMED_TYPE: Final = re.compile(rb"<!DOCTYPE[^\[\]<>]{0,1000}>")
_DECLARED: Final = re.compile(r"""<\?xml[^>]{0,100}?encoding\s*=\s*["']([\w.:-]+)""")


def check_xml(data: bytes) -> bytes:
    """The same bytes without the name of a document type, if a parser finds no entity in them and no file to open.

    Raises:
        ExtractError: there is a document type with declarations, or a charset that could hide one.
    """
    data = _NAMED_TYPE.sub(b"", data, count=1)
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    text = data.decode("utf-16", "replace") if wide else data[:200].decode("latin-1")
    declared = _DECLARED.search(text)
    plain = text.lstrip("\xef\xbb\xbf\ufeff \t\r\n").startswith("<") and "\0" not in text[:200]
    if not plain or (declared and declared[1].lower() not in _XML_CODECS):
        raise ExtractError("its XML is in no charset of documents: save it again in the program that made it")
    if ("<!DOCTYPE" in text or "<!ENTITY" in text) if wide else (b"<!DOCTYPE" in data or b"<!ENTITY" in data):
        raise ExtractError("its XML declares entities, as only files do that are made to harm: leave it out")
    return data


def parse_xml(data: bytes) -> Any:
    """The root element of XML without entities.

    Raises:
        ExtractError: it declares some.
        SyntaxError: it is not well formed, or nested more than 256 deep.
    """
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True, remove_pis=True
    )
    return etree.fromstring(check_xml(data), parser)


def local(element: Any) -> str:
    """The name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]
