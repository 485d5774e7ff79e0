"""General models, trained on no protocol: each is addressed in the dialect that it handles best.

A rung is a dialect: native tool calls, constrained JSON, the protocol in words, or plain words about passages that
Cairn itself searched for. The loop above sees none of this: it reads the protocol's blocks, as from a trained policy.
"""
