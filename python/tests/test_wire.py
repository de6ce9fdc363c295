"""Decodes a capture of a real link by docs/spec/wire.md alone: the original packets come out.

Both captures were made between two nodes, with 5 % of the frames lost: `link.pcap.gz` without keys,
with files, pages and datagrams in six services; `sealed.pcap.gz` with keys. They hold what arrived
at either end, in the order of time. `record_wire.py` makes them anew.
"""

import base64
import json
import re
import struct
from collections import Counter, defaultdict
from pathlib import Path

import pytest
import sealed
import wire

DATA = Path(__file__).parent / "data"
PORT = 7007
LEFT, RIGHT = "192.0.2.1", "192.0.2.2"
PUBLIC = dict(zip((LEFT, RIGHT), (DATA / "sealed.keys").read_text().split(), strict=True))
CARRIES = ("data", "copy", "retransmission")


@pytest.fixture(scope="module")
def frames() -> list[tuple[str, wire.Frame]]:
    whole = wire.Whole(head=9)
    came = [(s, whole.frame(s, m)) for s, m in wire.datagrams(DATA / "link.pcap.gz", PORT)]
    messages = [(source, message) for source, message in came if message]
    tables = [wire.hello(m[9:]).table for _, m in messages if m[0] == 9 and not m[10] & 0x3C]
    layouts = wire.layouts(next(table for table in tables if table))
    return [(source, wire.frame(message, layouts)) for source, message in messages]


@pytest.fixture(scope="module")
def hellos(frames: list[tuple[str, wire.Frame]]) -> list[tuple[str, wire.Hello]]:
    ours = [(s, f.rest) for s, f in frames if f.kind == "hello" and not f.rest[1] & 0x3C]
    return [(source, wire.hello(body)) for source, body in ours]


def test_a_session_is_what_hellos_say(
    frames: list[tuple[str, wire.Frame]], hellos: list[tuple[str, wire.Hello]]
) -> None:
    epochs = {source: hello.epoch for source, hello in hellos}
    session = wire.session_number(*epochs.values())
    assert {hello.session for _, hello in hellos} == {0, session}
    assert {f.session for _, f in frames if f.kind != "hello"} == {session}
    for end, other in ((LEFT, RIGHT), (RIGHT, LEFT)):
        nonces = {hello.nonce for source, hello in hellos if source == end}
        echoed = {hello.echo for source, hello in hellos if source == other}
        assert 0 not in nonces
        assert nonces & echoed


def test_tables_and_terms_have_their_digests(hellos: list[tuple[str, wire.Hello]]) -> None:
    told = [hello for _, hello in hellos if hello.table]
    assert told
    for hello in told:
        assert hello.table
        assert hello.digest == wire.fnv1a(hello.table.encode())
        modulus = re.findall(r"^modulus (\d+)$", hello.table, re.MULTILINE)[0]
        for line in hello.table.splitlines()[:-1]:
            number, text = line.split(" ", 1)
            terms = wire.fnv1a(f"{text} modulus {modulus}".encode())
            assert hello.offers[int(number)][2] == terms


def test_probes_and_marks_are_answered(frames: list[tuple[str, wire.Frame]]) -> None:
    bodies = [(source, f.rest) for source, f in frames if f.kind == "hello"]
    probes = {(source, b[4:16]) for source, b in bodies if b[1] == 4}
    answers = {(source, b[4:16]) for source, b in bodies if b[1] == 8 and len(b) == 16}
    other = {LEFT: RIGHT, RIGHT: LEFT}
    assert answers
    assert {(other[s], b) for s, b in answers} <= probes
    marks = {(source, f.seq) for source, f in frames if f.kind == "mark"}
    reports = {(other[s], f.seq) for s, f in frames if f.kind == "report" and len(f.rest) == 8}
    assert reports
    assert reports <= marks


def payloads(frames: list[tuple[str, wire.Frame]]) -> dict[tuple[str, int], dict[int, bytes]]:
    """By source and service: the payload of each number, which repairs and copies repeat."""
    found: dict[tuple[str, int], dict[int, bytes]] = defaultdict(dict)
    for source, frame in frames:
        if frame.kind in CARRIES:
            before = found[source, frame.service].setdefault(frame.seq, frame.rest)
            assert before == frame.rest, "a repeated number carries what it carried"
    return found


def assert_is_a_packet(packet: bytes) -> None:
    """Its lengths and checksums are right."""
    assert packet[0] == 0x45
    assert len(packet) == int.from_bytes(packet[2:4])
    assert wire.checksum(packet[:20]) == 0
    if packet[9] in (6, 17):
        pseudo = packet[12:20] + struct.pack(">HH", packet[9], len(packet) - 20)
        assert wire.checksum(pseudo + packet[20:]) == 0


def test_all_packets_are_decoded_and_files_are_complete(
    frames: list[tuple[str, wire.Frame]],
) -> None:
    forms: Counter[int] = Counter()
    files: dict[tuple[int, int], dict[int, bytes]] = defaultdict(dict)
    for (_, service), numbered in payloads(frames).items():
        if service in (1, 2, 5):
            assert sorted(numbered) == list(range(len(numbered))), "nothing is missing"
        unpacker = wire.Unpacker()
        for _, payload in sorted(numbered.items()):
            forms[payload[0] & 0xF0] += 1
            for packet in unpacker.packets(payload):
                assert_is_a_packet(packet)
                if packet[9] == 6:
                    ports = struct.unpack_from(">HH", packet, 20)
                    (seq,) = struct.unpack_from(">I", packet, 24)
                    data = packet[20 + (packet[32] >> 4) * 4 :]
                    files[ports][seq] = max(files[ports].get(seq, b""), data, key=len)
    assert {0x20, 0x30, 0x40, 0x50} <= set(forms), "fragments, short, whole and opening"
    line = b"".join(b"line %06d of a file\n" % i for i in range(1000))
    sizes = []
    for (source, _), segments in files.items():
        text = b"".join(data for _, data in sorted(segments.items()))
        if source in (80, 81, 9000):
            assert text == line[: len(text)]
            sizes.append(len(text))
    assert sorted(sizes) == [9000, 9000, 16000, 16000]


def test_parities_are_sums(frames: list[tuple[str, wire.Frame]]) -> None:
    blocks: dict[tuple[str, int], dict[int, tuple[int, bytes]]] = defaultdict(dict)
    for source, frame in frames:
        if frame.service == 4:
            block, place = divmod(frame.seq, 5)
            assert frame.kind == ("parity" if place == 4 else "data")
            length = frame.fields["c"] if place == 4 else len(frame.rest)
            blocks[source, block][place] = (length, frame.rest)
    complete = [block for block in blocks.values() if 4 in block and len(block) >= 4]
    assert {len(block) for block in complete} == {4, 5}, "some blocks lack a packet"
    for block in complete:
        left, image = 0, bytearray(2000)
        for length, rest in block.values():
            left ^= length
            image[: len(rest)] = bytes(a ^ b for a, b in zip(image, rest, strict=False))
        assert not any(image[left:])
        if len(block) == 4:
            assert_is_a_packet(bytes(image[:left]))
        else:
            assert left == 0


def test_feedback_names_numbers_that_were_sent(frames: list[tuple[str, wire.Frame]]) -> None:
    other = {LEFT: RIGHT, RIGHT: LEFT}
    sent = {key: max(numbers) for key, numbers in payloads(frames).items()}
    kinds: Counter[str] = Counter()
    for source, frame in frames:
        kinds[frame.kind] += 1
        newest = sent.get((other[source], frame.service), -1)
        if "a" in frame.fields:
            assert frame.fields["a"] <= newest + 1
        if frame.kind == "nak":
            assert frame.seq <= newest
        if frame.kind == "keepalive":
            assert frame.seq <= sent[source, frame.service]
        if frame.kind == "bitmap":
            assert len(frame.rest) <= 16
            assert not frame.rest.endswith(b"\0")
        if frame.fields.get("e", 0) & 0xFFFF != 0xFFFF and "e" in frame.fields:
            assert frame.fields["e"] >> 16 <= newest
    assert set(kinds) >= set(wire.KINDS) - {"link"}, "all kinds but one are in the capture"


def test_sealed_messages_are_addressed_by_their_indices() -> None:
    keys = {source: base64.b64decode(key) for source, key in PUBLIC.items()}
    other = {LEFT: RIGHT, RIGHT: LEFT}
    indices: dict[str, set[int]] = {LEFT: set(), RIGHT: set()}
    counters: dict[tuple[str, int], list[int]] = defaultdict(list)
    kinds: Counter[str] = Counter()
    for source, message in wire.datagrams(DATA / "sealed.pcap.gz", PORT):
        first, second = struct.unpack_from(">II", message)
        if first & 1 << 31:
            index = first & (1 << 30) - 1
            assert index in indices[other[source]]
            assert len(message) >= 24
            counters[source, index].append(second)
            kinds["bound" if first & 1 << 30 else "unbound"] += 1
            continue
        length = {1 << 24: 145, 2 << 24: 93}[first]
        assert len(message) == length
        assert second < 1 << 30
        assert wire.mac1_is_right(message, keys[other[source]])
        assert not wire.mac1_is_right(message, keys[source])
        indices[source].add(second)
        if length == 93:
            assert int.from_bytes(message[8:12]) in indices[other[source]]
    assert {"bound", "unbound"} <= set(kinds)
    for numbers in counters.values():
        assert len(set(numbers)) == len(numbers), "a counter is used once"
        assert min(numbers) == 0
        assert max(numbers) < 2 * len(numbers)


def test_a_handshake_and_sealed_frames_open_by_the_document() -> None:
    """`sealed.py` called a node; with its keys the recorded messages can be opened, and are
    frames."""
    record = json.loads((DATA / "handshake.json").read_text())
    static, ephemeral, responder = (
        bytes.fromhex(record[key]) for key in ("static", "ephemeral", "responder")
    )
    initiator = sealed.Initiator(static, ephemeral, responder)
    initiation = initiator.initiation(record["index"], record["timestamp"])
    assert initiation.hex() == record["initiation"]
    _, _, receive = initiator.response(bytes.fromhex(record["response"]))
    messages = [bytes.fromhex(message) for message in record["messages"]]
    layouts, session, kinds = {0: "bare"}, None, Counter[str]()
    whole = wire.Whole(head=5)
    for message in messages:
        bound = message[0] >> 6 & 1
        if bound:
            with pytest.raises(AssertionError, match="authentic"):
                sealed.opened(receive, message, session=1)
        plain = whole.frame("", sealed.opened(receive, message, session))
        if plain is None:
            assert not bound
            continue
        frame = wire.frame(plain, layouts, sealed=True)
        kinds[frame.kind] += 1
        assert bound == (frame.kind != "hello")
        if frame.kind == "hello" and not frame.rest[1] & 0x3C:
            hello = wire.hello(frame.rest)
            session = wire.session_number(record["epoch"], hello.epoch)
            assert hello.session in (0, session)
            if hello.table:
                layouts = wire.layouts(hello.table)
                for line in hello.table.splitlines()[:-1]:
                    number, text = line.split(" ", 1)
                    bits = 24 if layouts[int(number)] in wire.SHORT_NUMBERS else 32
                    terms = wire.fnv1a(f"{text} modulus {2**bits}".encode())
                    assert hello.offers[int(number)][2] == terms
        if frame.kind == "data":
            for packet in wire.Unpacker().packets(frame.rest):
                assert_is_a_packet(packet)
                assert packet.endswith(b"through the link")
    assert kinds["hello"]
    assert kinds["data"]


def test_the_document_has_the_numbers_of_the_program() -> None:
    sources = Path(__file__).parents[2]
    document = (sources / "docs/spec/wire.md").read_text(encoding="utf-8")
    session = (sources / "crates/protocol/session/src/hello.rs").read_text(encoding="utf-8")
    version = re.findall(r"const VERSION: u8 = (\d+);", session)
    assert [str(wire.VERSION)] == version
    assert f"| session protocol | {version[0]} |" in document
    secure = "".join(
        (sources / "crates/protocol/secure/src" / name).read_text(encoding="utf-8")
        for name in ("noise.rs", "mac.rs")
    )
    labels = re.findall(r"const [A-Z0-9_]+: &\[u8\] = b\"(.*)\";", secure)
    assert len(labels) == 3
    for label in labels:
        assert f"`{label}`" in document


def test_the_document_has_the_kinds_and_layouts_of_the_program() -> None:
    sources = Path(__file__).parents[2]
    document = (sources / "docs/spec/wire.md").read_text(encoding="utf-8")
    folder = sources / "crates/protocol/link/src/wire"
    kinds = re.findall(
        r"^    [A-Z]\w+ = (\d+), \"(\w+)\", \w+;$",
        (folder / "kind.rs").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert [name for _, name in kinds] == wire.KINDS
    assert all(f"\n| {code} | {name} |" in document for code, name in kinds)
    layouts = re.findall(
        r"[A-Z_]+ = \"([a-z-]+)\", sealed: (\d),\s+study: \[[A-Za-z ]*\], live: \[([A-Za-z ]*)\]",
        (folder / "layout.rs").read_text(encoding="utf-8"),
    )
    letters = {
        "Seq": "n",
        "Ack": "n",
        "Echo": "e",
        "CodedLen": "c",
        "Index": "i",
        "Back": "b",
        "Octets": "o",
    }
    of_program = {
        name: "".join(letters[field] for field in fields.split()) for name, _, fields in layouts
    }
    assert of_program.pop("ports") == "n"
    assert of_program == wire.LAYOUTS
    assert {name for name, width, _ in layouts if width == "3"} == set(wire.SHORT_NUMBERS)
    assert all(f"\n| {name} | `" in document for name in wire.LAYOUTS)
