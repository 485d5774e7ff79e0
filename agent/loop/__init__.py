"""One rollout: from a question to a trace."""
