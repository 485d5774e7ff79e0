"""Sources: what answers queries. Here is what all of them share; each kind has a package of its own.

live: search services on the web. care: what is put around each of them. pages: the pages behind hits. corpus: your
documents. kg: a graph in a file.
"""
