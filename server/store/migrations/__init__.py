"""How a database of any older Cairn becomes one of this Cairn; run when the store is opened."""
