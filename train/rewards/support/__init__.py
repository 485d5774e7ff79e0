"""What rewards share: a rollout's blocks and searches, scores, masking, vectors, judges and readers."""
