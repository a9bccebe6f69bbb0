"""Players behind an address: a JSON protocol over HTTP, its client (a player) and its server."""
