"""`cairn train plan`: what a recipe at full scale needs, by formulas, and a rehearsal of it at a small size."""
