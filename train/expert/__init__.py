"""Trajectories from real questions: an expert that knows the gold passages searches a real index and answers."""
