"""The browser table: rooms in which people and bots play one another."""

from __future__ import annotations

from .house import House
from .messages import Refused
from .room import Person, Room
from .server import TableServer, serve
from .settings import Settings

__all__ = ["House", "Person", "Refused", "Room", "Settings", "TableServer", "serve"]
