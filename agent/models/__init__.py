"""Base models: fetched without a hub, and converted without torch.

fetch: into the user's cache. ready: what the embedded engine serves, what training begins from. to_ct2, to_hub and
to_gguf: the three forms that are written. base, weights, adapter and tokenizer: what is read, from a GGUF or the hub's
form.
"""
