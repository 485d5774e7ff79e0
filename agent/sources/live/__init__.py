"""Connectors to live search APIs: each is one `Source` that makes one attempt a call. Imported where one is built."""
