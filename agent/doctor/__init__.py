"""What `cairn doctor` looks at: every source, index, engine and place that the settings name, each one a check."""

from agent.doctor.checks import checks_of, paid_probes
from agent.doctor.run import Check, Finding, State, Verdict, diagnose, examine

__all__ = ["Check", "Finding", "State", "Verdict", "checks_of", "diagnose", "examine", "paid_probes"]
