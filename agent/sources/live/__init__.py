"""Backends: a `Source` for each live search API, which makes one attempt a call. Imported where one is built."""
