"""`cairn bench load`: the real server in a process of its own, under many clients at once."""
