"""Cairn as an environment of other people's trainers: its sources, protocols and rewards, and rollouts of its own loop.

A trainer pins versions of libraries that are not Cairn's, so a rollout runs in a process of Cairn's own environment:

* `settings`, `rollouts`, `__main__`: that process. They import the agent and the rewards.
* `process`: starts it and talks to it, with the standard library alone.
* `verifiers`, `lightning`: one trainer each. They import `process` and their trainer, and nothing else of Cairn.
"""
