"""Records the captures for test_wire.py anew, as root: `python record_wire.py PROGRAM`.

There are two nodes in network namespaces with `airlane air` between them; what arrives at each is
recorded. Run it when the version of the protocol changes; docs/spec/wire.md and wire.py then
change, too.
"""

import base64
import ctypes
import gzip
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import sealed
import wire

PROGRAM = str(Path(sys.argv[1]).resolve())
DATA = Path(__file__).parent / "data"
ENDS = {"left": 1, "right": 2}
PACKET_OUTGOING = 4
CLONE_NEWNET = 0x40000000
AIR = """schema = 1
name = "radio"
interfaces = ["to-left", "to-right"]
rate = "12 Mbit/s"
delay = "10 ms"
errors = { kind = "uniform", rate = 0.05 }
"""
NODE = """schema = 1
name = "NAME"
tun = { name = "air0", addresses = ["10.7.0.HERE/24"], mtu = "1400 B" }
control = { socket = "FOLDER/NAME.sock" }
[link]
rate = "10 Mbit/s"
delay = "10 ms"
underlay = { kind = "udp", listen = "192.0.2.HERE:7007", peer = "192.0.2.THERE:7007" }
security = SECURITY
fragment = "700 B"
"""
SERVICES = {
    "files": 'kind = "sr-m2", keepalives = 8, repeat-naks = true, copies = { longest = "200 B" }',
    "pages": 'kind = "sr-bitmap"',
    "voice": 'kind = "rlp-oos", retries = 3, copies = { after = "10 ms", share = 0.02 }',
    "telemetry": 'kind = "xor", block = 4',
    "flows": 'kind = "sr-m2", order = "flow"',
}
CLASSES = {
    'dscp = "EF"': "voice",
    'protocol = "udp", port = 5004': "telemetry",
    'protocol = "tcp", port = 80': "pages",
    'protocol = "tcp", port = 81': "flows",
    'protocol = "tcp"': "files",
}
FILES = {80: 9_000, 81: 9_000, 9_000: 16_000}
LINES = b"".join(b"line %06d of a file\n" % i for i in range(1_000))
Packets = list[tuple[float, bytes]]


def enter(host: str) -> None:
    """From now on this thread is on that host."""
    with Path(f"/run/netns/wire-{host}").open() as namespace:
        # Works in every version of Python; os.setns requires 3.12.
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


def sniff(host: str, until: float, packets: Packets) -> None:
    enter(host)
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    wire.bind(("wire", 3))
    wire.settimeout(0.2)
    while time.time() < until:
        try:
            frame, address = wire.recvfrom(65_535)
        except TimeoutError:
            continue
        udp = frame[12:14] == b"\x08\x00" and frame[23] == socket.IPPROTO_UDP
        if udp and address[2] != PACKET_OUTGOING:
            packets.append((time.time(), frame))


def serve(port: int) -> None:
    enter("right")
    if port in FILES:
        server = socket.create_server(("10.7.0.2", port))
        while True:
            connection, _ = server.accept()
            connection.recv(100)
            connection.sendall(LINES[: FILES[port]])
            connection.close()
    echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    echo.bind(("10.7.0.2", port))
    while True:
        data, sender = echo.recvfrom(2_000)
        echo.sendto(data[:20], sender)


def fetch(port: int) -> None:
    enter("left")
    with socket.create_connection(("10.7.0.2", port), timeout=8) as connection:
        connection.sendall(b"go")
        while connection.recv(65_536):
            pass


def talk(datagrams: int) -> None:
    enter("left")
    voice, telemetry = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    voice.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 46 << 2)
    for i in range(datagrams):
        voice.sendto(b"v" * 60, ("10.7.0.2", 6000))
        telemetry.sendto(bytes([i]) * (40 + i), ("10.7.0.2", 5004))
        time.sleep(0.02)


def run(*command: str, host: str | None = None) -> subprocess.Popen[bytes]:
    there = ["ip", "netns", "exec", f"wire-{host}"] if host else []
    return subprocess.Popen([*there, *command])


def write(name: str, packets: Packets) -> None:
    packets.sort()
    start = int(packets[0][0])
    pcap = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1)
    for at, frame in packets:
        seconds, micros = divmod(int((at - start) * 1e6), 1_000_000)
        pcap += struct.pack("<IIII", seconds, micros, len(frame), len(frame)) + frame
    (DATA / name).write_bytes(gzip.compress(pcap, 9, mtime=0))


def record(folder: Path, security: dict[str, str], ports: list[int], datagrams: int) -> Packets:
    services = "".join(
        f'[[link.services]]\nnumber = {i}\nname = "{name}"\nrate = 0.2\nscheme = {{ {scheme} }}\n'
        f"compact-headers = {'true' if name in ('files', 'flows') else 'false'}\n"
        for i, (name, scheme) in enumerate(SERVICES.items(), 1)
    )
    classes = "".join(
        f'[[link.classes]]\nmatch = {{ {match} }}\nservice = "{service}"\n'
        for match, service in CLASSES.items()
    )
    (folder / "air.toml").write_text(AIR)
    for name, here in ENDS.items():
        node = NODE.replace("NAME", name).replace("FOLDER", str(folder))
        node = node.replace("THERE", str(3 - here)).replace("HERE", str(here))
        node = node.replace("SECURITY", security[name])
        (folder / f"{name}.toml").write_text(node + services + classes)
    packets: Packets = []
    until = time.time() + 12
    sniffers = [threading.Thread(target=sniff, args=(host, until, packets)) for host in ENDS]
    for sniffer in sniffers:
        sniffer.start()
    running = [run(PROGRAM, "air", str(folder / "air.toml"), host="air")]
    time.sleep(1)
    running += [run(PROGRAM, "up", str(folder / f"{host}.toml"), host=host) for host in ENDS]
    time.sleep(3)
    if ports:
        for port in (*FILES, 5004, 6000):
            threading.Thread(target=serve, args=(port,), daemon=True).start()
    time.sleep(0.5)
    fetchers = [threading.Thread(target=fetch, args=(port,)) for port in ports]
    fetchers.append(threading.Thread(target=talk, args=(datagrams,)))
    for thread in fetchers:
        thread.start()
    for thread in [*fetchers, *sniffers]:
        thread.join()
    for process in running:
        process.terminate()
        process.wait()
    return packets


def answer(hello: wire.Hello, table: str, epoch: int, nonce: int) -> bytes:
    """A hello with the same services, which accepts the received one."""
    session = wire.session_number(epoch, hello.epoch)
    body = struct.pack(">4B", wire.VERSION, 1, 0, len(hello.offers))
    words = (epoch, nonce, hello.nonce, hello.digest, session, nonce, 0, 0, 0)
    body += struct.pack(">4QI4Q", *words)
    for service, (instance, _, terms) in hello.offers.items():
        body += struct.pack(">BIIQ", service, instance, instance, terms)
    text = table.encode()
    return b"\x09\0\0\0\0" + body + struct.pack(">H", len(text)) + text


def record_handshake(folder: Path) -> None:
    """This program calls a node that has `air0`, with keys that are recorded."""
    enter("right")
    run("ip", "link", "set", "lo", "up").wait()
    static, ephemeral = os.urandom(32), os.urandom(32)
    made = subprocess.check_output([PROGRAM, "keygen", str(folder / "called.key")])
    responder = base64.b64decode(made.split()[-1])
    peer_key = base64.b64encode(sealed.x25519(static, sealed.BASE)).decode()
    (folder / "called.toml").write_text(
        f"""schema = 1
name = "called"
tun = {{ name = "air0", addresses = ["10.7.0.2/24"] }}
control = {{ socket = "{folder}/called.sock" }}
[link]
rate = "10 Mbit/s"
underlay = {{ kind = "udp", listen = "127.0.0.1:7007", peer = "127.0.0.1:7008" }}
security = {{ private-key = "{folder}/called.key", peer-key = "{peer_key}" }}
"""
    )
    node = run(PROGRAM, "up", str(folder / "called.toml"))
    caller = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    caller.bind(("127.0.0.1", 7008))
    caller.settimeout(3)
    time.sleep(1)
    index, timestamp, epoch = 0x1234567, time.time_ns(), 7
    initiator = sealed.Initiator(static, ephemeral, responder)
    initiation = initiator.initiation(index, timestamp)
    caller.sendto(initiation, ("127.0.0.1", 7007))
    response, messages, sent, table, whole = b"", [], 0, "", wire.Whole(head=5)
    traffic = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    while sum(message[0] >> 6 & 1 for message in messages) < 4:
        traffic.sendto(b"through the link", ("10.7.0.1", 9))
        message = caller.recv(3_000)
        if message[0] == 2:
            response = message
            theirs, send, receive = initiator.response(message)
            reply = b""
        elif response and message[0] & 0x80:
            messages.append(message)
            if message[0] & 0x40 or len(messages) > 3:
                continue
            frame = whole.frame("", sealed.opened(receive, message))
            if frame is None or frame[6] & 0x3C:
                continue
            hello = wire.hello(frame[5:])
            table = hello.table or table
            reply = answer(hello, table, epoch, 2 * sent + 1)
        else:
            continue
        caller.sendto(sealed.data(send, theirs, sent, reply), ("127.0.0.1", 7007))
        sent += 1
    node.terminate()
    node.wait()
    record = {
        "static": static.hex(),
        "ephemeral": ephemeral.hex(),
        "responder": responder.hex(),
        "index": index,
        "timestamp": timestamp,
        "epoch": epoch,
        "initiation": initiation.hex(),
        "response": response.hex(),
        "messages": [message.hex() for message in messages],
    }
    (DATA / "handshake.json").write_text(json.dumps(record, indent=1) + "\n")


def main() -> None:
    try:
        for host in ("left", "air", "right"):
            run("ip", "netns", "add", f"wire-{host}").wait()
        for host, number in ENDS.items():
            there = ["peer", "name", f"to-{host}", "netns", "wire-air"]
            run("ip", "-n", f"wire-{host}", "link", "add", "wire", "type", "veth", *there).wait()
            address = f"192.0.2.{number}/24"
            run("ip", "-n", f"wire-{host}", "address", "add", address, "dev", "wire").wait()
            run("ip", "-n", f"wire-{host}", "link", "set", "wire", "up").wait()
            run("ip", "-n", "wire-air", "link", "set", f"to-{host}", "up").wait()
        with tempfile.TemporaryDirectory() as name:
            folder, public = Path(name), {}
            for host in ENDS:
                made = subprocess.check_output([PROGRAM, "keygen", str(folder / f"{host}.key")])
                public[host] = made.decode().split()[-1]
            none = dict.fromkeys(ENDS, '"none"')
            write("link.pcap.gz", record(folder, none, [9_000, 80, 81, 9_000], 40))
            keys = {
                host: f'{{ private-key = "{folder}/{host}.key", peer-key = "{public[other]}" }}'
                for host, other in (("left", "right"), ("right", "left"))
            }
            write("sealed.pcap.gz", record(folder, keys, [], 5))
            (DATA / "sealed.keys").write_text("".join(f"{key}\n" for key in public.values()))
            record_handshake(folder)
    finally:
        for host in ("left", "air", "right"):
            run("ip", "netns", "del", f"wire-{host}").wait()


if __name__ == "__main__":
    main()
