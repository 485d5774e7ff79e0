"""Files: our own, and those that others may have made."""
