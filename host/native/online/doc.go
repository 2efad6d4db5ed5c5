// Package online replays a workload in real time: requests are sent when a clock
// says that they are due, to live engines behind the live router, and what comes
// back is measured on that clock.
//
// It owns when requests are sent, the closed loop between their ends and those
// that wait for them, and the measuring. It does not own which turn arrives when
// and what a report makes of it (core/replay's Course), how engines run
// (live/worker), where requests go (live/fleet), or how time passes
// (live/clock).
//
// Invariants:
//   - a request's latencies count from when it was due, however late it was sent;
//     an idle engine takes it up as of then, too.
//   - requests due at one time are sent together, and so are those that follow the
//     ends of one pass.
//   - a token's time is that at which its request was told of it, never before
//     the time that the engine's model says.
//   - everything a run has begun has ended when Run returns.
//
// On a clock that moves only while everybody waits an open loop gives the times
// of a simulation. A closed loop does not quite: the next request comes when its
// engine has begun another pass, as with real engines.
//
// Source: replay notes §8; records and rates §9.
package online
