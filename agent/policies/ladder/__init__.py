"""General models, which were trained on no protocol: whatever dialect one speaks best, its turns become the protocol's.

A rung is a dialect: native tool calls, constrained JSON, the protocol in words, or plain words about passages that
Cairn itself searched for. The loop above sees none of this: it reads the protocol's blocks, as from a trained policy.
"""
