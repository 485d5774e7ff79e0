"""The knowledge graph: triples in one file, found by the names that a question holds. Live Wikidata is elsewhere."""
