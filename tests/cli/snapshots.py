"""Takes saved states apart and puts them together with other contents, as an attacker could."""

import hashlib
import struct

MAGIC = b"normscope.snapshot/1\n"


def opened(state):
    """The bytes before the payload, including its length, and the payload."""
    assert state.startswith(MAGIC)
    name = len(MAGIC) + 8
    payload = name + struct.unpack_from("<Q", state, len(MAGIC))[0] + 4 + 32 + 8
    return state[:payload], state[payload:-32]


def sealed(before, payload):
    """The state with that payload, and with matching length and checksum."""
    state = before[:-8] + struct.pack("<Q", len(payload)) + payload
    return state + hashlib.sha256(state).digest()


def reach_tokens(payload):
    """The tokens in the state of a `reach`, each as its number and its bytes, number first, and the rest: tokens whose
    leads were computed, how many were processed, the gap of probabilities, tokens of points, and the points."""
    count = struct.unpack_from("<Q", payload)[0]
    numbers = struct.unpack_from(f"<{count}Q", payload, 8)
    head = payload[8 + 8 * count:]
    at = len(payload) - len(head) + head_size(head)
    tokens = []
    for number in numbers:
        first = at
        at += VECTORS - 8
        for size in (8, 16, 16, 8):  # a point, weights on tokens twice, a point
            at += 8 + size * struct.unpack_from("<Q", payload, at)[0]
        at += 8 + 1
        tokens.append((number, struct.pack("<Q", number) + payload[first:at]))
    return tokens, head[:head_size(head)] + payload[at:]


# Where fields begin in the bytes of a token: number, whether it is done, answers, bounds, then vectors; the runner-up and
# a flag are last.
ANSWER, LOWER, UPPER, VECTORS = 9, 17, 25, 33
YES, NO, UNDECIDED = b"\0", b"\1", b"\2"

# No leads were computed, and no probabilities, whose gap is then 0.
NOTHING_SHARP = struct.pack("<QQdQ", 0, 0, 0.0, 0)


def head_size(rest):
    """The bytes of the rest before its points; all of it where it is cut off."""
    try:
        at = 8 + 8 * struct.unpack_from("<Q", rest)[0] + 8 + 8
        return min(len(rest), at + 8 + 8 * struct.unpack_from("<Q", rest, at)[0])
    except struct.error:
        return len(rest)


def reach_payload(tokens, rest=NOTHING_SHARP):
    """The payload of those tokens and the rest."""
    size = head_size(rest)
    return (struct.pack("<Q", len(tokens)) + b"".join(token[:8] for token in tokens) + rest[:size]
            + b"".join(token[8:] for token in tokens) + rest[size:])
