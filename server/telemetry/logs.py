"""The server's log: one line an event on standard error, as JSON or for people, each with its request's id.

Every line goes through the redactor as its last step, so nothing can be logged past it. Questions are never logged.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final, Literal, TextIO

from agent.sanitize.text import printable, printable_json, whole
from server.auth.keys import caller
from server.telemetry.redact import Redactor
from server.telemetry.watch import Observer, WatchedRun

logger = logging.getLogger("server.runs")

OURS: Final = ("agent", "server", "train")
"""Loggers that follow the level of the settings; those of libraries report warnings only: some log whole URLs."""
_PLAIN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


def facts_of(record: logging.LogRecord) -> dict[str, Any]:
    """What a line says beside its message: who sent the request, and whatever was given as `extra`."""
    who = caller()
    more = {name: value for name, value in vars(record).items() if name not in _PLAIN}
    facts = {"request_id": who.request_id, "key": who.key} | more
    return {name: value for name, value in facts.items() if value != ""}


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **facts_of(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        clean = {name: self._clean(value) for name, value in line.items()}
        return printable_json(whole(json.dumps(clean, ensure_ascii=False, default=str)))

    def _clean(self, value: object) -> object:
        return value if isinstance(value, int | float | None) else self._redactor(str(value))


class Console(logging.Formatter):
    """A line for people, and the traceback below it."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        facts = " ".join(f"{name}={value}" for name, value in facts_of(record).items())
        line = f"{when} {record.levelname.lower():7} {record.getMessage()}  {facts}".rstrip()
        if record.exc_info:
            line += f"\n{self.formatException(record.exc_info)}"
        return printable(whole(self._redactor(line)))


def _is_logged(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING or record.name.partition(".")[0] in OURS


def set_up_logs(
    *,
    secrets: set[str],
    form: Literal["auto", "console", "json"] = "auto",
    level: str = "info",
    stream: TextIO | None = None,
) -> logging.Handler:
    """Send all logs of this process through one handler.

    Args:
        secrets: what no line may hold.
        form: auto writes for people where the stream is a terminal.
        level: of our own loggers; those of libraries report warnings.
        stream: standard error by default.
    """
    out = stream or sys.stderr
    for_people = form == "console" or (form == "auto" and out.isatty())
    redactor = Redactor(secrets)
    handler = logging.StreamHandler(out)
    handler.addFilter(_is_logged)  # some libraries set a level of their own
    handler.setFormatter(Console(redactor) if for_people else JsonLines(redactor))
    logging.root.handlers = [handler]
    logging.root.setLevel(logging.WARNING)
    for name in OURS:
        logging.getLogger(name).setLevel(level.upper())
    return handler


class RunLines(Observer):
    """One line for each run that ended: what it took, and nothing of what was said."""

    def ended(self, run: WatchedRun) -> None:
        if not logger.isEnabledFor(logging.INFO):
            return
        used, stopped = run.trace.usage, run.trace.stopped
        facts = {
            "run": run.trace.id,
            "request_id": run.caller.request_id,
            "key": run.caller.key,
            "policy": run.trace.policy,
            "protocol": run.trace.protocol,
            "reason": stopped.reason if stopped else "broken",
            "cancelled": run.cancelled,
            "seconds": round(run.took, 4),
            "first_token": None if run.first_token is None else round(run.first_token, 4),
            "searches": used.searches,
            "tokens": used.prompt_tokens + used.environment_tokens + used.policy_tokens,
        }
        logger.info("run ended", extra=facts)
