"""A run to take away: its trace as JSON, a page in Markdown or HTML, or its sources as BibTeX.

What sources and policies wrote is escaped for each form; an export loads nothing, and runs nothing of theirs.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, count
from typing import Final, Literal

from agent.checks.claims import cited_by, claims_of
from agent.evidence import Passage
from agent.trace import Claim, Gathered, Planned, Searched, SearchFailed, Trace
from agent.trace.page import trace_page
from server.http.encoding import dumped

Format = Literal["json", "markdown", "html", "bibtex"]

_CHECKS: Final[Mapping[str, str]] = {
    "verbatim": "verbatim",
    "close": "close",
    "not_found": "not found",
    "contradicted": "contradicted",
}
_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]<>#|~!&])|^(\s*)([-+=]|\d+[.)])(?=\s|$)", re.MULTILINE)
_TEX: Final[Mapping[str, str]] = {
    "\\": r"\textbackslash{}",
    "{": r"\textbraceleft{}",  # BibTeX counts those behind a backslash, too
    "}": r"\textbraceright{}",
    "%": r"\%",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


@dataclass(frozen=True)
class ExportedFile:
    """A file."""

    text: str
    media_type: str
    name: str


def export(trace: Trace, format: Format) -> ExportedFile:
    """The run of this trace in one of the forms."""
    media_type, ending, write = _FORMS[format]
    return ExportedFile(write(trace), media_type, f"cairn-{re.sub(r'[^0-9A-Za-z_-]', '', trace.id)[:32]}.{ending}")


def sources_of(trace: Trace) -> list[Passage]:
    """Every passage that was shown, once, in order of its number."""
    shown = trace.passages or [p for step in trace.steps if isinstance(step, Gathered) for p in step.passages]
    return list({passage.identity: passage for passage in shown}.values())


def _numbered(trace: Trace) -> Mapping[tuple[str, str], int]:
    """The number of each source by its identity: the policy's, or where these begin again and again, its place."""
    sources = sources_of(trace)
    once = len({passage.number for passage in sources}) == len(sources)
    return {p.identity: p.number if once else place for place, p in enumerate(sources, start=1)}


def markdown(trace: Trace) -> str:
    """The question, its answer, the supporting claims, the searches and the sources."""
    numbers = _numbered(trace)
    lines = [f"# {_md(trace.question)}", "", _md(trace.answer or _no_answer(trace)), ""]
    claims, shown = claims_of(trace)
    if claims:
        lines += ["## Evidence", ""]
        for claim in claims:
            cited = cited_by(claim, shown)
            lines.append(f"- {_md(claim.text)} {_marks(cited, numbers)} ({_check(claim)})".replace("  ", " "))
            for quote in claim.quotes:
                quoted = [passage for passage in cited if quote.is_of(passage)][:1]
                lines.append(f"  > {_md(quote.text)} {_marks(quoted, numbers)}".rstrip())
        lines.append("")
    if searches := list(_searches(trace)):
        lines += [
            "## Searches",
            "",
            *(f"- {_md(query)} ({_md(source)}): {_md(how)}" for query, source, how in searches),
        ]
        lines.append("")
    if sources := sources_of(trace):
        lines += ["## Sources", ""]
        lines += [f"- {_marks([p], numbers)} {_md(_place(p))}{_md_link(p.url)}" for p in sources]
        lines.append("")
    return "\n".join([*lines, _md(_closing(trace)), ""])


def bibtex(trace: Trace) -> str:
    """One entry for each source, with a key of its own."""
    keys: set[str] = set()
    entries: list[str] = []
    for passage in _documents(sources_of(trace)):
        base = _key(passage)
        key = next(key for key in chain([base], (f"{base}-{n}" for n in count(2))) if key not in keys)
        keys.add(key)
        fields = {
            "title": "{" + _tex(passage.title or passage.id) + "}",
            "howpublished": _tex(passage.source),
            "url": re.sub(r"[{}\\]", "", passage.url),
            "year": passage.date[:4] if re.match(r"\d{4}", passage.date) else "",
            "date": passage.date if re.fullmatch(r"\d{4}-\d\d(-\d\d)?", passage.date) else "",
        }
        lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
        entries.append("\n".join([f"@misc{{{key},", *lines, "}"]))
    return "\n\n".join(entries) + "\n" if entries else "% This run was shown no source.\n"


def _documents(passages: Iterable[Passage]) -> Iterable[Passage]:
    """One passage of each document."""
    found: dict[str, Passage] = {}
    for passage in passages:
        found.setdefault(passage.url or re.sub(r"#\d+$", "", passage.id), passage)
    return found.values()


def _key(passage: Passage) -> str:
    words = re.findall(r"[a-z0-9]+", passage.title.lower())[:3]
    return "-".join([*words, passage.date[:4]] if passage.date[:4].isdigit() else words) or "source"


def _searches(trace: Trace) -> Iterable[tuple[str, str, str]]:
    """(query, source, what came of it)."""
    for step in trace.steps:
        if isinstance(step, Searched):
            yield step.query, step.source, f"{len(step.passages)} found" if step.passages else "nothing found"
        elif isinstance(step, SearchFailed):
            yield step.query, step.source, f"failed: {step.why}"


def _closing(trace: Trace) -> str:
    rounds = sum(isinstance(step, Planned) for step in trace.steps)
    stopped = trace.stopped.reason if trace.stopped else "running"
    used = f"{rounds} rounds, {trace.usage.searches} searches, {trace.timings.total:.2f} s"
    return f"Cairn, protocol {trace.protocol}, policy {trace.policy}; {stopped}; {used}; run {trace.id}."


def _no_answer(trace: Trace) -> str:
    detail = trace.stopped.detail if trace.stopped else "it still runs"
    return f"There is no answer: {detail or (trace.stopped and trace.stopped.reason)}"


def _marks(passages: Iterable[Passage], numbers: Mapping[tuple[str, str], int]) -> str:
    found = dict.fromkeys(numbers[passage.identity] for passage in passages if passage.identity in numbers)
    return " ".join(rf"\[{number}\]" for number in found)


def _check(claim: Claim) -> str:
    return _CHECKS.get(claim.check, "not checked")


def _place(passage: Passage) -> str:
    return " · ".join(part for part in (passage.title or passage.id, passage.source, passage.date) if part)


def _md(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return _MARKDOWN.sub(lambda m: f"\\{m[1]}" if m[1] else f"{m[2]}{m[3][:-1]}\\{m[3][-1]}", " ".join(text.split()))


def _md_link(url: str) -> str:
    return f" <{re.sub(r'[<>]', '', url)}>" if url else ""


def _tex(text: str) -> str:
    return "".join(_TEX.get(c, c) for c in " ".join(text.split()))


_FORMS: Final[Mapping[Format, tuple[str, str, Callable[[Trace], str]]]] = {
    "json": ("application/json", "json", dumped),
    "markdown": ("text/markdown; charset=utf-8", "md", markdown),
    "html": ("text/html; charset=utf-8", "html", trace_page),
    "bibtex": ("application/x-bibtex; charset=utf-8", "bib", bibtex),
}
