"""Benchmarks of the agent's own parts. `cairn bench` runs them."""
