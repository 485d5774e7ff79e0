"""The oracle: what a policy should write for a question of the little world, turn by turn.

It is the teacher of the cold start in all six of our protocols, never a policy that anyone is served.
"""

from train.sft.oracle.findings import NotShown
from train.sft.oracle.plans import can_fill
from train.sft.oracle.teacher import Teacher, TeacherTurn, Unreachable

__all__ = ["NotShown", "Teacher", "TeacherTurn", "Unreachable", "can_fill"]
