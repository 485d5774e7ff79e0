"""PPO as a baseline: a small loop of our own, with a critic, over the rollouts of `train.rl`."""
