"""The wordings of the little world: how each relation is asked for, searched for and told. Data only."""
