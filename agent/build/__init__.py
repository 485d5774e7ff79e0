"""From settings to an agent and its sources; what ships with the package."""
