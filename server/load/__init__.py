"""`cairn bench load`, `cairn bench peers`: the real server in a process of its own, asked by many clients at once."""
