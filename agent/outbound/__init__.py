"""Requests to other people's servers: addresses without secrets, bounded answers, numbers that are numbers."""
