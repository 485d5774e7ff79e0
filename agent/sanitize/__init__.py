"""Text and requests from elsewhere, made harmless."""
