"""What keeps a training run honest: monitors with rules that stop it, probes of the retriever, and a manifest."""
