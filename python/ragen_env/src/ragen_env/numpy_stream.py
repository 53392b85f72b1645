"""The stream of ``numpy.random.default_rng(seed)`` in plain Python, for environments that have to agree with others draw
for draw where NumPy is not installed. Gymnasium's ``np_random`` is the same stream.

SeedSequence (O'Neill's ``seed_seq_fe`` with NumPy's constants) feeds PCG64 (XSL-RR); bounded integers are Lemire's.
"""

_MASK32 = (1 << 32) - 1
_MASK64 = (1 << 64) - 1
_MASK128 = (1 << 128) - 1
_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645


class NumpyStream:
    """``default_rng(seed)``, as far as it is needed here."""

    def __init__(self, seed):
        a, b, c, d = _seed_sequence(seed, 4)
        self._increment = ((c << 64 | d) << 1 | 1) & _MASK128
        self._state = ((self._increment + (a << 64 | b)) * _MULTIPLIER + self._increment) & _MASK128
        self._half = None

    def random(self):
        """A double in [0, 1)."""
        return (self._next64() >> 11) / 9007199254740992.0

    def integers(self, low, high):
        """An integer from ``low`` up to and without ``high``; ranges of at most 2³² numbers."""
        count = high - low
        if count <= 1:
            return low
        if count > 1 << 32:
            raise ValueError("expected a range of at most 2**32 numbers, found %d" % count)
        if count == 1 << 32:
            return low + self._next32()
        threshold = ((1 << 32) - count) % count
        while True:
            product = self._next32() * count
            if product & _MASK32 >= threshold:
                return low + (product >> 32)

    def choice(self, weights):
        """``choice(len(weights), p=weights)``: an index."""
        total, uniform, cumulative = sum(weights), self.random(), 0.0
        for index, weight in enumerate(weights):
            cumulative += weight
            if uniform < cumulative / total:
                return index
        return len(weights) - 1

    def categorical(self, probabilities):
        """The draw of Gymnasium's toy-text environments: the first cumulative probability above a uniform number."""
        uniform, cumulative = self.random(), 0.0
        for index, probability in enumerate(probabilities):
            cumulative += probability
            if cumulative > uniform:
                return index
        return 0

    def _next64(self):
        self._state = (self._state * _MULTIPLIER + self._increment) & _MASK128
        folded = (self._state >> 64) ^ (self._state & _MASK64)
        turn = self._state >> 122
        return (folded >> turn | folded << (64 - turn)) & _MASK64

    def _next32(self):
        if self._half is not None:
            half, self._half = self._half, None
            return half
        wide = self._next64()
        self._half = wide >> 32
        return wide & _MASK32


def _seed_sequence(seed, count):
    """``SeedSequence(seed).generate_state(count, uint64)``."""
    if seed < 0:
        raise ValueError("expected a seed of 0 or more, found %d" % seed)
    entropy = []
    while seed:
        entropy.append(seed & _MASK32)
        seed >>= 32
    entropy = entropy or [0]
    constant = 0x43B0D7E5

    def mingle(value):
        nonlocal constant
        value ^= constant
        constant = constant * 0x931E8875 & _MASK32
        value = value * constant & _MASK32
        return value ^ value >> 16

    def mix(x, y):
        result = (x * 0xCA01F9DD - y * 0x4973F715) & _MASK32
        return result ^ result >> 16

    pool = [mingle(entropy[i] if i < len(entropy) else 0) for i in range(4)]
    for source in range(4):
        for target in range(4):
            if source != target:
                pool[target] = mix(pool[target], mingle(pool[source]))
    for word in entropy[4:]:
        for target in range(4):
            pool[target] = mix(pool[target], mingle(word))
    constant, words = 0x8B51F9DD, []
    for i in range(2 * count):
        value = pool[i % 4] ^ constant
        constant = constant * 0x58F38DED & _MASK32
        value = value * constant & _MASK32
        words.append(value ^ value >> 16)
    return [words[2 * i] | words[2 * i + 1] << 32 for i in range(count)]
