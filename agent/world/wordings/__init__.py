"""The wordings of the little world: how questions, queries and documents put each relation. Data only."""
