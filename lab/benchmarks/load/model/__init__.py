"""A small discrete-event model of the server under load: rounds, searches and the engine's calls."""
