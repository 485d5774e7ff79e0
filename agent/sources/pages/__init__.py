"""Pages of the open web, as passages: guarded fetching, extraction in worker processes, the part that fits a query.

Nothing is imported here: a worker process must not load what only the main process needs.
"""
