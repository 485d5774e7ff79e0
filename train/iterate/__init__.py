"""Expert iteration: rounds of rollouts, a check, and supervised training on what it keeps: `cairn train iterate`."""
