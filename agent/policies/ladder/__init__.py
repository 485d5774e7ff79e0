"""General models, trained on no protocol: each is prompted on the best rung that it can use.

A rung is a way to prompt a model: native tool calls, constrained JSON, the protocol in words, or plain words about
passages that Cairn itself searched for. The loop sees none of this: it reads the protocol's blocks, as from a trained
policy.
"""
