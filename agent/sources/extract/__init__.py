"""Text out of documents for an index, and of pages of the web for a search, in one kind of worker process.

Nothing is imported here: a worker process must not load what only the main process needs.
"""
