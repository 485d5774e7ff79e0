"""Attacks on the installed product, one module per finding: test_NN_what.py. `python -m tests.attacks` runs them."""
