"""Learned players: networks, checkpoints, and players made of them."""
