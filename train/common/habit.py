"""The habits that an expert can show in a trajectory: what recipes name, and `train.sft.oracle` makes."""

from typing import Literal

Noise = Literal["few_rounds", "one_source", "wrong_source", "one_query", "vague_query", "known"]
"""How a trajectory is noisy. `few_rounds`: it stops before the last thing is looked up. `one_source`: only the least
current of several. `wrong_source`: one that cannot hold it. `one_query` in the place of three. `vague_query`: the bare
name. `known`: it searches for what it knows by heart."""

Habit = Noise | Literal["two_queries", "bare_merge", "poor_evidence", "unsearched", "repeats"]
"""`two_queries` in the place of three. `bare_merge`: it says which passages matter, and not what they say.
`poor_evidence`: it says what the evidence is about, and quotes nothing. `unsearched`: it gives up before any search.
`repeats`: it sends its first search twice."""
