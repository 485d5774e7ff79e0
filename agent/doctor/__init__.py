"""What `cairn doctor` looks at: every source, index, engine and place that the settings name, each one a check."""

from agent.doctor.checks import checks_of, paid_probes
from agent.doctor.run import CheckResult, Diagnosis, DoctorCheck, State, diagnose, examine

__all__ = ["CheckResult", "Diagnosis", "DoctorCheck", "State", "checks_of", "diagnose", "examine", "paid_probes"]
