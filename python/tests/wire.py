"""A decoder of live links after docs/spec/wire.md alone; comments name its sections.

It shares no code with Airlane.
"""

import gzip
import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

VERSION = 9
KINDS = [
    *("data", "ack", "nak", "keepalive", "parity", "copy", "link", "retransmission"),
    *("bitmap", "hello", "mark", "report"),
]
# Section 4: the fields of each layout, and the layouts of schemes; n stands for a number.
LAYOUTS = {
    "bare": "n",
    "seq": "n",
    "seq-ack": "nne",
    "lanes": "nneb",
    "coded": "nc",
    "block": "nci",
    "bitmap": "n",
    "gsm": "no",
}
SCHEMES = {
    **dict.fromkeys(("default", "snoop"), "bare"),
    **dict.fromkeys(("rlp", "rlp-oos"), "seq"),
    **dict.fromkeys(("gbn", "sr", "sr-m1", "sr-m2"), "seq-ack"),
    **dict.fromkeys(("xor", "rse", "rse-ad"), "coded"),
    "xor-ad": "block",
    "sr-bitmap": "bitmap",
    "gsm-rlp": "gsm",
}
WIDTHS = {"e": 4, "b": 2, "c": 2, "i": 1, "o": 2}
# Of sealed frames.
SHORT_NUMBERS = ("seq-ack", "lanes", "bitmap")


def fnv1a(data: bytes) -> int:
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return h


def session_number(one: int, other: int) -> int:
    h = fnv1a(struct.pack(">QQ", *sorted((one, other))))  # 3.1, rule 3
    return max((h >> 32 ^ h) & 0xFFFFFFFF, 1)


def datagrams(path: Path, port: int) -> Iterator[tuple[str, bytes]]:
    """Source address and payload of each UDP datagram in a pcap file of Ethernet frames."""
    data = gzip.decompress(path.read_bytes())
    at = 24
    while at < len(data):
        (length,) = struct.unpack_from("<8xI4x", data, at)
        frame, at = data[at + 16 : at + 16 + length], at + 16 + length
        if frame[12:14] == b"\x08\x00" and frame[23] == 17:
            udp = frame[14 + (frame[14] & 15) * 4 :]
            to, udp_length = struct.unpack_from(">2xHH", udp)
            if to == port:
                yield ".".join(str(b) for b in frame[26:30]), udp[8:udp_length]


@dataclass
class Hello:
    """Section 3.1."""

    epoch: int
    nonce: int
    echo: int
    digest: int
    session: int
    known: int
    offers: dict[int, tuple[int, int, int]]
    reports: int
    table: str | None


def hello(body: bytes) -> Hello:
    version, flags, reports, offers = body[:4]
    assert (version, flags & 0x3C) == (VERSION, 0)
    words = struct.unpack_from(">4QI4Q", body, 4)
    at = 72 + 21 * reports
    found = {}
    for _ in range(offers):
        service, *rest = struct.unpack_from(">BIIQ", body, at)
        found[service], at = tuple(rest), at + 17
    table = None
    if flags & 1:
        (length,) = struct.unpack_from(">H", body, at)
        table, at = body[at + 2 : at + 2 + length].decode(), at + 2 + length
    assert at == len(body)
    return Hello(*words[:5], words[8], found, reports, table)


@dataclass
class Whole:
    """Section 3.3: reassembles parts. `head` bytes precede a body of kind 9."""

    head: int
    parts: dict[tuple[str, int], dict[int, bytes]] = field(default_factory=dict)

    def frame(self, source: str, message: bytes) -> bytes | None:
        """The frame, or the reassembled one if this is the last part; None while parts are
        missing."""
        body = message[self.head :]
        if KINDS[message[0] & 15] != "hello" or body[1] != 16:
            return message
        index, count, number = struct.unpack_from(">BB4xI", body, 2)
        parts = self.parts.setdefault((source, number), {})
        parts[index] = body[12:]
        if len(parts) < count:
            return None
        del self.parts[source, number]
        return b"".join(part for _, part in sorted(parts.items()))


def layouts(table: str) -> dict[int, str]:
    """The layout of each service, from the table of a hello."""
    found = {0: "bare"}
    for line in table.splitlines():
        number, kind, *terms = line.split()
        if number != "modulus":
            lanes = terms[-2:] == ["order", "flow"]
            found[int(number)] = "lanes" if lanes else SCHEMES[kind]
    return found


@dataclass
class Frame:
    """Section 4."""

    service: int
    kind: str
    session: int
    fields: dict[str, int]
    rest: bytes

    @property
    def seq(self) -> int:
        return self.fields["n"]


def frame(message: bytes, of: dict[int, str], *, sealed: bool = False) -> Frame:
    service, kind = message[0] >> 4, KINDS[message[0] & 15]
    layout = "bare" if kind in ("hello", "mark", "report") else of[service]
    letters = "nne" if kind == "bitmap" else LAYOUTS[layout]
    number = 3 if sealed and layout in SHORT_NUMBERS else 4
    fields, at = {}, 1 if sealed else 5
    for letter in letters:
        name = "a" if letter == "n" and "n" in fields else letter
        width = number if letter == "n" else WIDTHS[letter]
        fields[name] = int.from_bytes(message[at : at + width])
        at += width
    assert at <= len(message), "truncated"
    session = 0 if sealed else int.from_bytes(message[1:5])
    return Frame(service, kind, session, fields, message[at:])


def aggregate(payload: bytes) -> Iterator[bytes]:
    at = 1
    while at < len(payload):
        length, at = payload[at], at + 1
        if length & 0x80:
            length, at = (length & 0x7F) << 8 | payload[at], at + 1
        yield payload[at : at + length]
        at += length
    assert at == len(payload)


def checksum(data: bytes) -> int:
    total = sum(struct.unpack(f">{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


@dataclass
class Unpacker:
    """Section 5: one service, one direction, payloads in the order of release."""

    contexts: dict[int, tuple[bytes, int]] = field(default_factory=dict)
    parts: dict[int, dict[int, bytes]] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)

    def packets(self, payload: bytes) -> Iterator[bytes]:
        if payload[0] == 0x10:
            for packet in aggregate(payload):
                yield self.expand(packet)
        elif payload[0] & 0xFE == 0x20:
            last, index, number = struct.unpack_from(">BBH", payload)
            parts = self.parts.setdefault(number, {})
            parts[index] = payload[4:]
            if last & 1:
                self.ends[number] = index + 1
            if len(parts) == self.ends.get(number):
                yield self.expand(b"".join(parts[i] for i in range(len(parts))))
                del self.parts[number], self.ends[number]
        else:
            yield self.expand(payload)

    def expand(self, packet: bytes) -> bytes:
        """Section 5.1."""
        form = packet[0] >> 4
        if form in (4, 6):
            return packet
        if form in (5, 7):
            at, uncounted = (2, 0) if form == 5 else (4, 40)
            whole = bytearray(packet)
            whole[0] ^= 0x10
            struct.pack_into(">H", whole, at, len(packet) - uncounted)
            self.keep(int.from_bytes(packet[at : at + 2]), bytes(whole))
            return bytes(whole)
        assert packet[0] in (0x30, 0x31), "malformed"
        stored, end = self.contexts[packet[1]]
        whole = self.shortened(bytearray(stored), end, packet)
        if packet[0] == 0x30:
            self.keep(packet[1], whole)
        return whole

    def keep(self, context: int, packet: bytes) -> None:
        ip = 20 if packet[0] >> 4 == 4 else 40
        head = ip + (packet[ip + 12] >> 4) * 4
        (seq,) = struct.unpack_from(">I", packet, ip + 4)
        flags = packet[ip + 13]
        end = seq + len(packet) - head + (flags & 1) + (flags >> 1 & 1)
        self.contexts[context] = (packet[:head], end % 2**32)

    def shortened(self, head: bytearray, end: int, packet: bytes) -> bytes:
        tos, changes, rest = packet[2], packet[3], packet[6:]
        ip = 20 if head[0] >> 4 == 4 else 40

        def take(n: int) -> bytes:
            nonlocal rest
            taken, rest = rest[:n], rest[n:]
            return taken

        def number() -> int:
            value, shift = 0, 0
            while (byte := take(1)[0]) & 0x80:
                value, shift = value | (byte & 0x7F) << shift, shift + 7
            return value | byte << shift

        def advance(at: int, start: int | None = None) -> None:
            old = int.from_bytes(head[at : at + 4]) if start is None else start
            struct.pack_into(">I", head, at, (old + number()) % 2**32)

        struct.pack_into(">I", head, ip + 4, end)
        if changes & 0x80:
            advance(ip + 4, end)
        if changes & 0x01:
            advance(ip + 8)
        if changes & 0x02:
            head[ip + 14 : ip + 16] = take(2)
        if changes & 0x04:
            advance(ip + 24)
        if changes & 0x08:
            advance(ip + 28)
        if changes & 0x10:
            head[ip + 20 :] = take(take(1)[0])
            head[ip + 12] = (len(head) - ip) // 4 << 4
        head[ip + 13] = 0x18 if changes & 0x40 else 0x10
        head[ip + 16 : ip + 18] = packet[4:6]
        if ip == 20:
            number_before = int.from_bytes(head[4:6])
            head[4:6] = (
                take(2) if changes & 0x20 else struct.pack(">H", (number_before + 1) % 2**16)
            )
            head[1], head[10:12] = tos, b"\0\0"
            struct.pack_into(">H", head, 2, len(head) + len(rest))
            struct.pack_into(">H", head, 10, checksum(bytes(head[:20])))
        else:
            head[0], head[1] = 0x60 | tos >> 4, tos << 4 & 0xF0 | head[1] & 0x0F
            struct.pack_into(">H", head, 4, len(head) - 40 + len(rest))
        return bytes(head) + rest


def mac1_is_right(message: bytes, receiver: bytes) -> bool:
    """Section 2.2, of an initiation or a response."""
    key = hashlib.blake2s(b"airlane-secure 1 mac1" + receiver).digest()
    covered, mac = message[:-32], message[-32:-16]
    return hashlib.blake2s(covered, digest_size=16, key=key).digest() == mac
