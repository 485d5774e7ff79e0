"""A report as a file: Markdown, HTML, DOCX, PDF or JSON."""

from agent.report.export.formats import FORMATS, MEDIA, ExportedReport, Format, check_format, export, format_of

__all__ = ["FORMATS", "MEDIA", "ExportedReport", "Format", "check_format", "export", "format_of"]
