"""`cairn bench load`: the real server in a process of its own, asked by many clients at once."""
