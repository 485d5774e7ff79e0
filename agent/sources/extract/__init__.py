"""Text out of HTML and PDF, in one kind of worker process: whole documents for an index, pages of the web for a search.

Nothing is imported here: a worker process must not load what only the main process needs.
"""
