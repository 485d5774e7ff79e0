"""Sources: what answers queries. Here is what all of them share; each kind has a package of its own.

live: search services on the web. resilience: tries, limits and caches around each of them. pages: the pages behind
hits. corpus: your documents. extract: text out of files and pages. kg: a graph in a file.
"""
