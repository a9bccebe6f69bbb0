"""How often somebody may do something."""

from __future__ import annotations


class Bucket:
    """Allows `burst` times at once, and then `rate` a second.

    Args:
        burst: how many it holds; it begins full.
        rate: how many come back a second.
        now: the time, in seconds.
    """

    def __init__(self, burst: float, rate: float, now: float) -> None:
        self.burst, self.rate = burst, rate
        self._left, self._since = float(burst), now

    def left(self, now: float) -> float:
        """How many times are allowed now."""
        return min(self.burst, self._left + (now - self._since) * self.rate)

    def take(self, now: float) -> bool:
        """Take one, if there is one; whether there was."""
        left = self.left(now)
        self._left, self._since = left - (left >= 1), now
        return left >= 1


class Buckets:
    """A bucket for each address; those that are full again are forgotten by `advance`."""

    def __init__(self, burst: float, rate: float) -> None:
        self.burst, self.rate = burst, rate
        self._of: dict[str, Bucket] = {}

    def any(self, address: str, now: float) -> bool:
        """Whether an address has one left."""
        return address not in self._of or self._of[address].left(now) >= 1

    def take(self, address: str, now: float) -> bool:
        """Take one of an address's; whether there was one."""
        if address not in self._of:
            self._of[address] = Bucket(self.burst, self.rate, now)
        return self._of[address].take(now)

    def advance(self, now: float) -> None:
        """Forget the buckets that are full."""
        self._of = {address: bucket for address, bucket in self._of.items() if bucket.left(now) < bucket.burst}

    def __len__(self) -> int:
        return len(self._of)
