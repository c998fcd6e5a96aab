"""Saved states taken apart and put together again, as a stranger could do it."""

import hashlib
import struct

MAGIC = b"normscope.snapshot/1\n"


def opened(state):
    """What stands before the payload, its length included, and the payload."""
    assert state.startswith(MAGIC)
    name = len(MAGIC) + 8
    payload = name + struct.unpack_from("<Q", state, len(MAGIC))[0] + 4 + 32 + 8
    return state[:payload], state[payload:-32]


def sealed(before, payload):
    """The state with that payload: its length and its checksum are right."""
    state = before[:-8] + struct.pack("<Q", len(payload)) + payload
    return state + hashlib.sha256(state).digest()


def reach_tokens(payload):
    """The tokens that the state of a reach holds, each as its number and its bytes, and what stands behind them."""
    tokens, at = [], 8
    for _ in range(struct.unpack_from("<Q", payload)[0]):
        begin, number = at, struct.unpack_from("<Q", payload, at)[0]
        at += 8 + 1 + 1 + 8 + 8 + 8
        for size in (16, 16, 8, 8, 8):  # weights on tokens twice, points twice, the ends of a sphere
            at += 8 + size * struct.unpack_from("<Q", payload, at)[0]
        tokens.append((number, payload[begin:at]))
    return tokens, payload[at:]


# No leads worked out, no probabilities of a gap of nothing.
NOTHING_SHARP = struct.pack("<QQdQ", 0, 0, 0.0, 0)


def reach_payload(tokens, rest=NOTHING_SHARP):
    """The payload of those tokens, with what stands behind them."""
    return struct.pack("<Q", len(tokens)) + b"".join(tokens) + rest
