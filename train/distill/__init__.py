"""Rollouts that a check accepts, as rows for supervised training: `cairn train distill`."""
