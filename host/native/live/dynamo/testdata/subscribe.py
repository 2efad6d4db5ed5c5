"""Hears a rank's events as clients of vLLM do, with libzmq, and asks for them again.

Usage: subscribe.py EVENTS REPLAY COUNT. Says "ready" once it is connected and subscribes,
then the numbers and payloads of COUNT messages heard, of all asked for by a DEALER,
and of the first asked for by a REQ, a line each.
"""

import struct
import sys

import zmq

events, replay, count = (int(a) for a in sys.argv[1:4])
context = zmq.Context()
sub = context.socket(zmq.SUB)
sub.setsockopt(zmq.SUBSCRIBE, b"")
monitor = sub.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
sub.connect(f"tcp://127.0.0.1:{events}")
monitor.recv_multipart()
print("ready", flush=True)
for _ in range(count):
    topic, number, payload = sub.recv_multipart()
    assert topic == b""
    print("heard", number.hex(), payload.hex(), flush=True)

dealer = context.socket(zmq.DEALER)
dealer.connect(f"tcp://127.0.0.1:{replay}")
dealer.send_multipart([b"", struct.pack(">Q", 0)])
while True:
    delimiter, topic, number, payload = dealer.recv_multipart()
    assert delimiter == topic == b""
    if number == b"\xff" * 8:
        assert payload == b""
        break
    print("asked", number.hex(), payload.hex(), flush=True)

req = context.socket(zmq.REQ)
req.connect(f"tcp://127.0.0.1:{replay}")
req.send(struct.pack(">Q", 1))
topic, number, payload = req.recv_multipart()
print("first", number.hex(), payload.hex(), flush=True)
