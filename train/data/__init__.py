"""The data pipeline of Reasoning-Search (2506.08352, section 3.5): documents in, questions over several of them out.

`build.build` runs it, `commands` is `cairn data`, docs/data.md says what each step does. It needs no torch but for
its embeddings, and trains nothing.
"""
