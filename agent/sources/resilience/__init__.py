"""Retries, limits, fallback and cache, put around every live back end alike."""
