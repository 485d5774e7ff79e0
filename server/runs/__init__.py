"""Runs that outlive their clients: started, followed, cancelled, listed and exported by their id, from any replica."""
