"""The five papers in miniature: `cairn reproduce`. Their claims as data, the runs that test them, and the verdicts."""
