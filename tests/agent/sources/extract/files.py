"""Makes small PDF files, as a printer would."""

from collections.abc import Sequence


def make_pdf(*pages: Sequence[str], title: str = "") -> bytes:
    """A PDF with lines of text on each page; no lines: a page as a scanner makes it, without any text."""
    kids = [4 + 2 * number for number in range(len(pages))]
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), b" ".join(b"%d 0 R" % kid for kid in kids)),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for kid, lines in zip(kids, pages, strict=True):
        shown = b" ".join(b"(%s) Tj T*" % _escape(line) for line in lines)
        content = b"BT /F1 12 Tf 14 TL 72 720 Td %s ET" % shown
        resources = b"/Resources << /Font << /F1 3 0 R >> >>"
        page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] %s /Contents %d 0 R >>" % (resources, kid + 1)
        parts += [page, b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content)]
    parts.append(b"<< /Title (%s) >>" % _escape(title))
    body, places = b"%PDF-1.4\n", list[int]()
    for number, part in enumerate(parts, start=1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(parts) + 1
    table = b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table)
    trailer = b"trailer << /Size %d /Root 1 0 R /Info %d 0 R >>" % (size, len(parts))
    return body + table + trailer + b"\nstartxref\n%d\n%%%%EOF\n" % len(body)


def _escape(text: str) -> bytes:
    return text.encode("latin-1").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")
