"""Bridges to other frameworks, each behind its own extra and imported only when asked for."""
