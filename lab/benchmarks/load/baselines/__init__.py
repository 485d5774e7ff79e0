"""Cairn beside other agents on the same questions, with the same instant policy and the same slow search."""
