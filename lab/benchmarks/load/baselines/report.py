"""`cairn bench baselines`: its tables and its page. It measures nothing."""

import platform
from typing import TYPE_CHECKING

from agent.cores import cores
from lab.benchmarks.load.baselines import tasks
from lab.benchmarks.load.baselines.contenders import NAMES
from lab.report import ReportTable

if TYPE_CHECKING:
    from lab.benchmarks.load.baselines.race import Race

_MANY = ("", "requests/s", "median", "CPU time of a request")


def tables(race: "Race") -> tuple[ReportTable, ReportTable]:
    head = ["", "longest path", *(NAMES[name] for name in race.contenders)]
    alone = ReportTable(head, _alone(race), title="One question alone", caption=_in_time(race))
    clients = f"{race.together[0].clients} clients"
    return alone, ReportTable(_MANY, _together(race), title=clients, caption=_fastest(race))


def _alone(race: "Race") -> list[list[str]]:
    rows: list[list[str]] = []
    for task, name in tasks.NAMES.items():
        took = [f"{one.ms_p50:.0f} ms (max {one.ms_max:.0f})" for one in race.alone if one.task == task]
        rows.append([name, f"{1000 * tasks.longest_path_seconds(task):.0f} ms", *took])
    return rows


def _together(race: "Race") -> list[list[str]]:
    return [
        [NAMES[one.contender], f"{one.requests_per_s:.1f}", f"{one.ms_p50:.0f} ms", f"{one.cpu_ms:.2f} ms"]
        for one in race.together
    ]


def _in_time(race: "Race") -> str:
    from lab.benchmarks.load.baselines.race import BOUND_MS

    said = ", ".join(f"{NAMES[name]} {race.over_ms(name):.1f} ms" for name in race.contenders)
    held = ", ".join(NAMES[name] for name in race.in_time) or "none"
    return (
        f"Over the longest path, in the question in which that is most: {said}. Within {BOUND_MS:.0f} ms in all four: "
        f"{held}"
    )


def _fastest(race: "Race") -> str:
    return f"The most requests a second: {NAMES[race.fastest]}"


def page(race: "Race") -> str:
    """What `--write` keeps."""
    alone, many = tables(race)
    return f"""# Beside other agents

`cairn bench baselines --write`; Python {platform.python_version()}, {cores()} cores, which all processes share. \
The others' libraries live in an environment of their own: `python -m venv .venv-baselines && \
.venv-baselines/bin/pip install --group baselines` (pip 25.1 or newer).

The same four questions, the same instant policy behind an OpenAI-compatible endpoint, which all ask over HTTP with \
openai-python, and the same search service that takes {1000 * tasks.SEARCH_SECONDS:.0f} ms. Each contender is one \
process that serves chat completions over HTTP, not streamed, by turns. A search's query holds what the \
searches before it found, so only who waited for them gives the right answer; every answer is checked \
({race.wrong} were wrong).

- *Cairn, a round at a time*: the policy writes what can be searched now, as a caller of tools does: as many turns of \
the model as the others have.
- *Cairn, one plan*: the policy writes the whole graph at once, and is called again for each query that needs what was \
found: more turns, which cost little where the policy is instant.
- Both are the server that `cairn serve` makes: admission, limits, metrics, and every run kept in SQLite. The other \
two keep nothing.
- *FastAPI + openai-python*: a loop of a few lines over tool calls; those of one turn run at the same time.
- *LangGraph ReAct*: its prebuilt agent (`langchain.agents.create_agent`), asynchronous. Both stand behind FastAPI on \
uvicorn with uvloop and httptools, which Cairn does without.

{alone.markdown()}

Medians, one question after the other. {_in_time(race)}.

{many.markdown()}

{race.together[0].clients} clients, each of which asks again when it has its answer, all four questions in turn. The \
CPU time is that of the contender's process. {_fastest(race)}.
"""
