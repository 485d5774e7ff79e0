"""Retries, limits, fallback and cache, put around every live backend alike."""
