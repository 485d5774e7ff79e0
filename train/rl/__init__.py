"""Reinforcement learning with our loop as the rollout: `cairn train rl`. Only `adapter` imports TRL."""
