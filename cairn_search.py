"""The environment `cairn-search` of verifiers, which finds an environment by the name of a module.

All of it is in `train/environments/verifiers.py`; docs/environments.md shows how to use it.
"""

from train.environments.verifiers import CairnEnv, CairnHarness, CairnTaskset, load_environment

__all__ = ["CairnEnv", "CairnHarness", "CairnTaskset", "load_environment"]
