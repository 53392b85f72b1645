"""Gymnasium's text environments in words: names of actions, rules, states.

Each class wraps the environment of that name. What is not here needs none: its actions are numbers and its text is what
it renders.
"""


class _Named:
    """An environment with what Gymnasium does not tell of it."""

    render_mode = "ansi"
    actions = []
    instruction = ""
    legend = {}

    def __init__(self, env):
        self.env = env
        self.spec = env.spec

    def reset(self, *, seed=None, options=None):
        return self.env.reset(seed=seed)

    def step(self, action):
        return self.env.step(action)

    def render(self):
        # The line with the last action says nothing about the state.
        lines = self.env.render().split("\n")
        return "\n".join(line for line in lines if not line.lstrip().startswith("("))

    def close(self):
        self.env.close()

    def is_success(self, reward, terminated):
        return terminated and reward > 0


class FrozenLake(_Named):
    """FrozenLake-v1."""

    actions = ["Left", "Down", "Right", "Up"]
    instruction = (
        "You cross a frozen lake from the start to the goal and stay out of the holes. The ice may be slippery: you may "
        "slide sideways instead of going where you want. Your cell is in brackets."
    )
    legend = {"S": "start", "F": "ice", "H": "hole", "G": "goal", "[ ]": "you"}


class CliffWalking(_Named):
    """CliffWalking-v1 and its slippery variant."""

    actions = ["Up", "Right", "Down", "Left"]
    instruction = (
        "You walk from the bottom left to the goal at the bottom right. Each step costs 1; stepping off the cliff costs "
        "100 and puts you back at the start."
    )
    legend = {"x": "you", "o": "ground", "C": "cliff", "T": "goal"}

    def is_success(self, reward, terminated):
        return terminated

    def render(self):
        return self.env.render()


class Taxi(_Named):
    """Taxi-v3 and later."""

    actions = ["South", "North", "East", "West", "Pickup", "Dropoff"]
    instruction = (
        "You drive a taxi in a walled grid. Drive to the passenger, pick them up, drive to their destination and drop "
        "them off there. Each step costs 1, a wrong pickup or dropoff 10; the right dropoff pays 20. Walls (|) cannot be "
        "crossed, colons can."
    )
    legend = {"R, G, Y, B": "landmarks", "|": "wall", ":": "passage", "[ ]": "the taxi"}

    _PLACES = ["R", "G", "Y", "B", "in the taxi"]

    def render(self):
        inner = self.env.unwrapped
        row, column, passenger, destination = (int(part) for part in inner.decode(inner.s))
        drawn = [list(line) for line in ("".join(map(bytes.decode, line)) for line in inner.desc.tolist())]
        here = drawn[row + 1][2 * column + 1]
        lines = ["".join(line) for line in drawn]
        line = lines[row + 1]
        at = 2 * column + 1
        lines[row + 1] = "%s[%s]%s" % (line[:at], here, line[at + 1 :])
        return "\n".join(
            lines + ["passenger: %s, destination: %s" % (self._PLACES[passenger], self._PLACES[destination])]
        )


class Blackjack(_Named):
    """Blackjack-v1, which draws pictures only: its observation is told in words."""

    render_mode = None
    actions = ["Stick", "Hit"]
    instruction = (
        "Blackjack against the dealer. Hit takes another card, Stick ends your hand. Come closer to 21 than the dealer "
        "without going beyond. An ace counts 11 if that does not go beyond 21, else 1."
    )

    def __init__(self, env):
        super().__init__(env)
        self._text = ""

    def reset(self, *, seed=None, options=None):
        observation, info = self.env.reset(seed=seed)
        return self._tell(observation), info

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._tell(observation), reward, terminated, truncated, info

    def render(self):
        return self._text

    def _tell(self, observation):
        total, dealer, ace = (int(part) for part in observation)
        self._text = "your sum: %d\ndealer shows: %d\nusable ace: %s" % (total, dealer, "yes" if ace else "no")
        return self._text


KNOWN = {
    "FrozenLake": FrozenLake,
    "FrozenLake8x8": FrozenLake,
    "CliffWalking": CliffWalking,
    "CliffWalkingSlippery": CliffWalking,
    "Taxi": Taxi,
    "Blackjack": Blackjack,
}
