"""The oracle: what a policy should write for a question of the little world, turn by turn.

It is the teacher of the cold start, never a policy that anyone is served. `first` knows the frozen worlds of generator
1; everything else is of the whole little world, in all six of our protocols.
"""

from train.sft.oracle.findings import NotShown
from train.sft.oracle.plans import can_fill
from train.sft.oracle.teacher import Teacher, Turn, Unreachable

__all__ = ["NotShown", "Teacher", "Turn", "Unreachable", "can_fill"]
