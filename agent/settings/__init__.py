"""Every setting: flag, environment, `cairn.toml`, default."""

from agent.settings.settings import (
    CONFIG_FILE,
    INSIDE,
    CairnSettings,
    cairns_above,
    default_environment,
    environment_of_children,
    load_settings,
    needing_consent,
    secret_named,
    settings_file,
    settings_of,
    wants_debug,
)
from agent.settings.tables import BudgetSettings, VllmSettings

__all__ = [
    "CONFIG_FILE",
    "INSIDE",
    "BudgetSettings",
    "CairnSettings",
    "VllmSettings",
    "cairns_above",
    "default_environment",
    "environment_of_children",
    "load_settings",
    "needing_consent",
    "secret_named",
    "settings_file",
    "settings_of",
    "wants_debug",
]
