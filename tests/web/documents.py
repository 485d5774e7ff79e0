"""Documents for the page: made here, dropped as a person drops them, and looked for on the disk when they are deleted."""

import base64
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import pytest
from docx import Document
from fpdf import FPDF

from agent.settings import load_settings
from server.launch import make_service
from tests.agent.models.case import put_base_into_cache
from tests.server.threaded import in_thread
from tests.web.pages import Watched

DROP = """files => {
    const data = new DataTransfer()
    for (const [name, body] of files) {
        const bytes = Uint8Array.from(atob(body), c => c.charCodeAt(0))
        data.items.add(new File([bytes], name))
    }
    for (const kind of ["dragover", "drop"])
        document.querySelector('.box').dispatchEvent(new DragEvent(kind, {dataTransfer: data, bubbles: true, cancelable: true}))
}"""


@contextmanager
def manual_server(data: Path, cache: Path) -> Generator[str]:
    """A server as `make serve` starts it: the manual, and the policy that reads English. Everything is kept in `data`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        put_base_into_cache()
        settings = load_settings(None, world="", store=str(data / "runs.sqlite"), library_folder=data / "libraries")
        service = make_service(settings)
    assert service.agent.policy.name == "small-v1"
    with in_thread(service) as address:
        yield address


def drop(page: Watched, files: Mapping[str, str | bytes]) -> None:
    """Drop files, by their names, onto the question, once the page knows that the server takes documents."""
    page.page.wait_for_selector(".box [aria-label='Add documents']")
    bodies = {name: body if isinstance(body, bytes) else body.encode() for name, body in files.items()}
    named = [[name, base64.b64encode(body).decode()] for name, body in bodies.items()]
    page.page.evaluate(DROP, named)


def pdf_of(title: str, *pages: str) -> bytes:
    """A PDF with a paragraph on each page."""
    pdf = FPDF()
    pdf.set_title(title)
    pdf.set_font("Helvetica", size=12)
    for text in pages:
        pdf.add_page()
        pdf.multi_cell(0, 8, text)
    return bytes(pdf.output())


def docx_of(title: str, sections: Mapping[str, str]) -> bytes:
    """A Word document with a title, and a paragraph under each heading."""
    document, data = Document(), BytesIO()
    document.core_properties.title = title
    for heading, text in sections.items():
        document.add_heading(heading, level=2)
        document.add_paragraph(text)
    document.save(data)
    return data.getvalue()


def holding(folder: Path, word: str) -> list[Path]:
    """The files that have a word in them, in capitals or not."""
    return [path for path in folder.rglob("*") if path.is_file() and word.lower().encode() in path.read_bytes().lower()]
