"""Your documents: read, cut into passages, indexed by words and by meaning."""
