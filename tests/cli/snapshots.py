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
    """The tokens in the state of a `reach`, each as its number and its bytes, and the bytes after them."""
    tokens, at = [], 8
    for _ in range(struct.unpack_from("<Q", payload)[0]):
        begin, number = at, struct.unpack_from("<Q", payload, at)[0]
        at += 8 + 1 + 1 + 8 + 8 + 8
        for size in (16, 16, 8, 8):  # weights on tokens twice, points twice
            at += 8 + size * struct.unpack_from("<Q", payload, at)[0]
        tokens.append((number, payload[begin:at]))
    return tokens, payload[at:]


# No leads were computed, and no probabilities, whose gap is then 0.
NOTHING_SHARP = struct.pack("<QQdQ", 0, 0, 0.0, 0)


def reach_payload(tokens, rest=NOTHING_SHARP):
    """The payload of those tokens, followed by `rest`."""
    return struct.pack("<Q", len(tokens)) + b"".join(tokens) + rest
