"""Sealed messages after docs/spec/wire.md, section 2: handshake and data of an initiator without
AES.

Simple, slow code for tests only; nothing here runs in constant time.
"""

import hashlib
import hmac
import struct

P = 2**255 - 19
PROLOGUE = b"airlane-secure 4"


def x25519(scalar: bytes, point: bytes) -> bytes:
    """RFC 7748, section 5."""
    k = int.from_bytes(scalar, "little") & ~7 & (1 << 255) - 1 | 1 << 254
    x1 = int.from_bytes(point, "little") % 2**255
    x2, z2, x3, z3, swap = 1, 0, x1, 1, 0
    for t in range(254, -1, -1):
        bit = k >> t & 1
        if swap ^ bit:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swap = bit
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        da, cb, aa, bb = d * a % P, c * b % P, a * a % P, b * b % P
        x3, z3 = (da + cb) ** 2 % P, x1 * (da - cb) ** 2 % P
        e = aa - bb
        x2, z2 = aa * bb % P, e * (aa + 121665 * e) % P
    if swap:
        x2, z2 = x3, z3
    return (x2 * pow(z2, P - 2, P) % P).to_bytes(32, "little")


BASE = (9).to_bytes(32, "little")


def chacha20(key: bytes, counter: int, nonce: bytes, data: bytes) -> bytes:
    """RFC 8439, section 2.4."""

    def quarter(s: list[int], a: int, b: int, c: int, d: int) -> None:
        for x, y, z, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            s[x] = (s[x] + s[y]) & 0xFFFFFFFF
            s[z] ^= s[x]
            s[z] = (s[z] << turn | s[z] >> 32 - turn) & 0xFFFFFFFF

    out = b""
    for at in range(0, len(data), 64):
        start = [*struct.unpack("<4I", b"expand 32-byte k"), *struct.unpack("<8I", key)]
        start += [counter + at // 64, *struct.unpack("<3I", nonce)]
        s = list(start)
        for _ in range(10):
            for i in range(4):
                quarter(s, i, 4 + i, 8 + i, 12 + i)
            for i in range(4):
                quarter(s, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
        stream = struct.pack("<16I", *((a + b) & 0xFFFFFFFF for a, b in zip(s, start, strict=True)))
        out += bytes(a ^ b for a, b in zip(data[at : at + 64], stream, strict=False))
    return out


def tag(key: bytes, nonce: bytes, ad: bytes, text: bytes) -> bytes:
    """RFC 8439, section 2.8."""
    one_time = chacha20(key, 0, nonce, bytes(32))
    r = int.from_bytes(one_time[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    padded = ad + bytes(-len(ad) % 16) + text + bytes(-len(text) % 16)
    padded += struct.pack("<QQ", len(ad), len(text))
    total = 0
    for at in range(0, len(padded), 16):
        total = (total + int.from_bytes(padded[at : at + 16] + b"\1", "little")) * r % (2**130 - 5)
    return ((total + int.from_bytes(one_time[16:], "little")) % 2**128).to_bytes(16, "little")


def seal(key: bytes, number: int, ad: bytes, plain: bytes) -> bytes:
    nonce = struct.pack("<IQ", 0, number)
    text = chacha20(key, 1, nonce, plain)
    return text + tag(key, nonce, ad, text)


def unseal(key: bytes, number: int, ad: bytes, sealed: bytes) -> bytes:
    nonce = struct.pack("<IQ", 0, number)
    assert tag(key, nonce, ad, sealed[:-16]) == sealed[-16:], "not authentic"
    return chacha20(key, 1, nonce, sealed[:-16])


def blake(*parts: bytes) -> bytes:
    return hashlib.blake2s(b"".join(parts)).digest()


def hkdf(chain: bytes, secret: bytes, outputs: int) -> list[bytes]:
    made, last = [], b""
    temporary = hmac.digest(chain, secret, "blake2s")
    for i in range(1, outputs + 1):
        last = hmac.digest(temporary, last + bytes([i]), "blake2s")
        made.append(last)
    return made


class Initiator:
    """The initiator of `Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s` (section 2.1)."""

    def __init__(self, static: bytes, ephemeral: bytes, responder: bytes) -> None:
        self.static, self.ephemeral, self.responder = static, ephemeral, responder
        self.hash = self.chain = blake(b"Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s")
        self.key, self.number = b"", 0
        self.mix_hash(PROLOGUE)
        self.mix_hash(responder)

    def mix_hash(self, data: bytes) -> None:
        self.hash = blake(self.hash, data)

    def mix_key(self, secret: bytes) -> None:
        self.chain, self.key = hkdf(self.chain, secret, 2)
        self.number = 0

    def encrypt(self, plain: bytes) -> bytes:
        text = seal(self.key, self.number, self.hash, plain)
        self.number += 1
        self.mix_hash(text)
        return text

    def decrypt(self, text: bytes) -> bytes:
        plain = unseal(self.key, self.number, self.hash, text)
        self.number += 1
        self.mix_hash(text)
        return plain

    def initiation(self, index: int, timestamp: int) -> bytes:
        """The message, with mac1 and a mac2 of zeros (section 2.2)."""
        public = x25519(self.ephemeral, BASE)
        noise = public
        for mix in (self.mix_hash, self.mix_key):
            mix(public)
        self.mix_key(x25519(self.ephemeral, self.responder))
        noise += self.encrypt(x25519(self.static, BASE))
        self.mix_key(x25519(self.static, self.responder))
        noise += self.encrypt(struct.pack(">QB", timestamp, 0))
        message = struct.pack(">II", 1 << 24, index) + noise
        key = blake(b"airlane-secure 1 mac1", self.responder)
        mac1 = hashlib.blake2s(message, digest_size=16, key=key).digest()
        return message + mac1 + bytes(16)

    def response(self, message: bytes) -> tuple[int, bytes, bytes]:
        """The responder's index, and the keys for sending and receiving data."""
        kind, index, ours = struct.unpack_from(">III", message)
        assert (kind, len(message)) == (2 << 24, 93), ours
        public = message[12:44]
        for mix in (self.mix_hash, self.mix_key):
            mix(public)
        self.mix_key(x25519(self.ephemeral, public))
        self.mix_key(x25519(self.static, public))
        self.chain, mixed, self.key = hkdf(self.chain, bytes(32), 3)
        self.mix_hash(mixed)
        self.number = 0
        assert self.decrypt(message[44:61]) == b"\0", "ChaCha20-Poly1305"
        send, receive = hkdf(self.chain, b"", 2)
        return index, send, receive


def data(key: bytes, index: int, number: int, plain: bytes) -> bytes:
    """An unbound data message (section 2.3)."""
    header = struct.pack(">II", 1 << 31 | index, number)
    return header + seal(key, number, header, plain)


def opened(key: bytes, message: bytes, session: int | None = None) -> bytes:
    first, number = struct.unpack_from(">II", message)
    bound = struct.pack(">Q", session) if first >> 30 & 1 and session is not None else b""
    return unseal(key, number, message[:8] + bound, message[8:])
