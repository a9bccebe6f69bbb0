"""Playing players against each other so that skill shows and luck cancels.

Every deal is played once in every seating of the two players over the sides, so a good hand serves
both. The unit of all statistics is the deal: what one deal's games have in common counts once.
"""

from ..rules import describe
from .compare import Comparison, compare
from .duels import Stopped, cross_table, duel
from .games import Played, forfeit_points, play_games
from .partners import Partners, SideSpec, seatings
from .picture import picture
from .results import Duel, Estimate, Forfeits, Samples, games_of
from .tables import from_json, share_table, to_csv, to_json

__all__ = [
    "Comparison",
    "Duel",
    "Estimate",
    "Forfeits",
    "Partners",
    "Played",
    "Samples",
    "SideSpec",
    "Stopped",
    "compare",
    "cross_table",
    "describe",
    "duel",
    "forfeit_points",
    "from_json",
    "games_of",
    "picture",
    "play_games",
    "seatings",
    "share_table",
    "to_csv",
    "to_json",
]
