"""From settings to telemetry: the log of the process, and traces where the settings ask for them."""

from agent.errors import SetupError
from agent.settings import CairnSettings
from server.telemetry.logs import set_up_logs
from server.telemetry.redact import secrets_of
from server.telemetry.watch import Observer


def set_up_log(settings: CairnSettings) -> None:
    """Send everything that this process logs to standard error, without the secrets of the settings."""
    set_up_logs(secrets=secrets_of(settings), form=settings.log_format, level=settings.log_level)


def observers_of(settings: CairnSettings) -> list[Observer]:
    """Who else sees runs.

    Raises:
        SetupError: traces are requested, and their extra is not installed.
    """
    if not settings.otel:
        return []
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        from server.telemetry.spans import Spans
    except ImportError as error:
        raise SetupError("traces need an extra: pip install 'cairn-search[otel]', or leave otel out") from error
    return [Spans(OTLPSpanExporter(), text=settings.otel_text)]
