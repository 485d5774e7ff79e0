"""What keeps a training run honest: monitors with rules that stop it, a canary for the retriever, and a manifest."""
