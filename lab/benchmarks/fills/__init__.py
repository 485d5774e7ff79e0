"""What fills bring: chains of the little world in one round with fills, beside one round for each hop."""
