"""Work in several processes of this machine, or on a Ray cluster."""
