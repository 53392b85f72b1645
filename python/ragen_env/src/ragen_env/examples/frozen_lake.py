"""RAGEN's FrozenLake in plain Python: the same settings and seed give the episodes of the built-in one, draw for draw.

``python -m ragen_env ragen_env.examples.frozen_lake:FrozenLake``
"""

from ..numpy_stream import NumpyStream

_STEPS = [(0, -1), (1, 0), (0, 1), (-1, 0)]
_MAX_DRAWS = 20_000


class FrozenLake:
    """Cross slippery ice from start to goal without falling into a hole."""

    actions = ["Left", "Down", "Right", "Up"]
    instruction = (
        "You cross a frozen lake. Reach the goal and stay out of the holes. The ice is slippery: you may slide sideways "
        "instead of going where you want."
    )
    legend = {
        "P": "player",
        "_": "ice",
        "O": "hole",
        "G": "goal",
        "X": "player in a hole",
        "√": "player on the goal",
    }

    def __init__(self, size=4, p=0.9, success_rate=0.8):
        self.size, self.p, self.success_rate = size, p, success_rate
        self.cells, self.start, self.goal, self.player, self.stream = "", 0, 0, 0, None

    def reset(self, *, seed=None, options=None):
        """Draws the map of the seed; chance on the ice has a stream of its own from the same seed."""
        self._draw(NumpyStream(seed))
        self.stream = NumpyStream(seed)
        self.stream.random()  # Gymnasium draws the start state although there is only one.
        self.player = self.start
        return self.render(), {}

    def step(self, action):
        before = self.player
        if self.success_rate >= 1:
            ways, chances = [action], [1.0]
        else:
            slip = (1 - self.success_rate) / 2
            ways, chances = [(action + 3) % 4, action, (action + 1) % 4], [slip, self.success_rate, slip]
        self.player = self._neighbour(before, ways[self.stream.categorical(chances)])
        success = self.player == self.goal
        over = success or self.cells[self.player] == "H"
        info = {"success": success, "action_is_effective": self.player != before}
        return self.render(), float(success), over, False, info

    def render(self):
        rows = []
        for row in range(self.size):
            cells = range(row * self.size, (row + 1) * self.size)
            rows.append("".join(self._symbol(cell) for cell in cells))
        return "\n".join(rows)

    def state_key(self):
        """The text does not show where the start was; the built-in environment's key does."""
        rows = [self.cells[row * self.size : (row + 1) * self.size] for row in range(self.size)]
        return "%s from %d" % ("/".join(rows), self.player)

    def _draw(self, stream):
        count = self.size * self.size
        for _ in range(_MAX_DRAWS):
            cells = ["FH"[stream.choice([self.p, 1 - self.p])] for _ in range(count)]
            start, goal = (
                stream.integers(0, self.size) * self.size + stream.integers(0, self.size) for _ in range(2)
            )
            if start == goal:
                continue
            cells[start], cells[goal] = "S", "G"
            self.cells, self.start, self.goal = "".join(cells), start, goal
            if self._passable():
                return
        raise RuntimeError("no map with a way to the goal in %d draws: use a greater p" % _MAX_DRAWS)

    def _passable(self):
        seen, waiting = set(), [self.start]
        while waiting:
            cell = waiting.pop()
            if cell == self.goal:
                return True
            if self.cells[cell] != "H" and cell not in seen:
                seen.add(cell)
                waiting.extend(self._neighbour(cell, way) for way in range(4))
        return False

    def _neighbour(self, cell, way):
        row, column = divmod(cell, self.size)
        down, right = _STEPS[way]
        row, column = min(max(row + down, 0), self.size - 1), min(max(column + right, 0), self.size - 1)
        return row * self.size + column

    def _symbol(self, cell):
        here = cell == self.player
        if self.cells[cell] == "H":
            return "X" if here else "O"
        if cell == self.goal:
            return "√" if here else "G"
        return "P" if here else "_"
