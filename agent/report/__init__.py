"""Reports: an outline, each section researched by the loop, made of sentences that the checker calls supported."""

from agent.report.assembling import unsupported
from agent.report.report import Report, ReportBudget
from agent.report.research import ReportEvent, ReportPlan, Research

__all__ = ["Report", "ReportBudget", "ReportEvent", "ReportPlan", "Research", "unsupported"]
