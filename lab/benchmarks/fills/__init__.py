"""What fills are worth: chains of the little world asked in one round with fills, beside one round for each hop."""
