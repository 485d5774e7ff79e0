"""A reader: a small model that answers a question from passages. It never searches, and it is no policy of ours.

It is here to measure what our evidence is worth to a model of another architecture (`lab.reader.transfer`).
"""
