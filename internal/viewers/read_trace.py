"""Reads a trace with Perfetto's own message definitions and tells, as JSON, its
tracks, slices and counters: python read_trace.py FILE. It judges nothing but
what makes a trace unreadable: names that stand for nothing, ends without a
beginning, fields that the definitions do not know."""

import json
import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

trace = Trace()
with open(sys.argv[1], "rb") as f:
    trace.ParseFromString(f.read())


def refuse_unknown(message):
    if len(UnknownFieldSet(message)):
        sys.exit(f"fields that {message.DESCRIPTOR.name} does not have: {message}")
    for field, value in message.ListFields():
        if field.message_type:
            for m in value if field.is_repeated else [value]:
                refuse_unknown(m)


events, notes, tracks = {}, {}, {}
slices, counters, under_way, last = [], [], {}, {}
for packet in trace.packet:
    refuse_unknown(packet)
    if packet.sequence_flags & packet.SEQ_INCREMENTAL_STATE_CLEARED:
        events, notes = {}, {}
    elif packet.HasField("track_event") and not packet.sequence_flags & packet.SEQ_NEEDS_INCREMENTAL_STATE:
        sys.exit("an event that may be read without its names")
    events.update((n.iid, n.name) for n in packet.interned_data.event_names)
    notes.update((n.iid, n.name) for n in packet.interned_data.debug_annotation_names)
    if packet.HasField("track_descriptor"):
        d = packet.track_descriptor
        tracks[d.uuid] = {
            "name": d.name or d.thread.thread_name or d.process.process_name, "parent": d.parent_uuid,
            "kind": "process" if d.HasField("process") else "thread" if d.HasField("thread") else "counter" if d.HasField("counter") else "track",
            "pid": d.process.pid or d.thread.pid, "unit": d.counter.unit_name,
        }
    if not packet.HasField("track_event"):
        continue
    e = packet.track_event
    if e.track_uuid not in tracks:
        sys.exit(f"an event on track {e.track_uuid}, which is not described")
    args = {notes[a.name_iid]: a.string_value if a.HasField("string_value") else a.int_value for a in e.debug_annotations}
    stack = under_way.setdefault(e.track_uuid, [])
    if packet.timestamp < last.get(e.track_uuid, 0):
        sys.exit(f"track {e.track_uuid} goes back in time")
    last[e.track_uuid] = packet.timestamp
    if e.type == TrackEvent.TYPE_COUNTER:
        counters.append([e.track_uuid, packet.timestamp, e.counter_value])
    elif e.type == TrackEvent.TYPE_SLICE_BEGIN:
        stack.append(len(slices))
        slices.append({
            "track": e.track_uuid, "name": events[e.name_iid] if e.name_iid else e.name, "depth": len(stack) - 1,
            "begin": packet.timestamp, "end": None, "args": args,
        })
    elif e.type == TrackEvent.TYPE_SLICE_END:
        s = slices[stack.pop()]
        s["end"] = packet.timestamp
        s["args"].update(args)
    else:
        sys.exit(f"an event of type {e.type}")
json.dump({"tracks": {str(k): v for k, v in tracks.items()}, "slices": slices, "counters": counters}, sys.stdout)
