// The scripts of a queue. Each is one atomic step, and each can be sent again where its reply was
// lost: the second time it finds that it was carried out.
//
// A queue NAME has these keys, with one hash tag, so a cluster keeps them on one node:
//
//   {hr:NAME}:s  stream of the jobs that may be taken, with the group "w"; an entry has the id
//   {hr:NAME}:z  sorted set of the ids that wait, by the time at which they are due
//   {hr:NAME}:j  hash of all jobs by id:
//                "state|attempts|since|line|holder|digest|length|key request"
//   {hr:NAME}:r  stream of results: i (the id) and l (the line)
//   {hr:NAME}:d  stream of dead letters, likewise
//   {hr:NAME}:m  hash about the queue: token, policy, n:STATE, late, poison
//   {hr:NAME}:u  set of the ids that are unknown
//
// The states are q (queued or taken), s (must not be sent twice, and may be on its way), w (waits),
// d (done), x (dead) and u (unknown). `holder` is who has last said that it sends, or how it ended:
// "CONSUMER ENTRY DELIVERIES". Only the server's clock counts: times are its milliseconds since
// 1970, and callers tell durations.
//
// Each script has all the keys, and the token of the queue as its first argument: a queue that was
// deleted, or made anew, is an error that begins with "GONE". The second argument is who asks.
#pragma once

#include "lib/extras/fleet/link.hpp"

#include <string>
#include <vector>

namespace httpretry::queue {

using fleet::Script;

// Makes the queue where it is not there.
//   token, "", policy, make (0 or 1)
// Replies: the token; the policy that it was begun with. Without the queue and with make = 0: nil.
extern const Script kOpen;

// Adds jobs, all or none. A job that is there with the same request stays as it is.
//   token, "", add (0: only compare), then for each: id, line, key, not before (ms, 0: none),
//   request
// Replies: how many were added, how many were there; the index of each whose id has another
// request.
extern const Script kEnqueue;

// What was delivered to a worker: its own jobs among these entries.
//   token, consumer, then for each: entry, id
// Replies for each that is its own and queued: entry, id, deliveries, attempts, since, line, key,
// request. `since`: when it may have been sent first, 0: it was not. Jobs that may have been sent,
// and must not be again, become unknown.
extern const Script kFetch;

// Takes over jobs of workers that say nothing more.
//   token, consumer, lease, count, cursor ("0-0"), lifetime of consumers without jobs
// Replies: the next cursor; as kFetch.
extern const Script kReap;

// Says that a worker is still there.
//   token, consumer, then for each of its jobs, in the order of the entries: entry, deliveries
// Replies: which of them are still its own, as indexes.
extern const Script kBeat;

// Before jobs that must not be sent twice may reach the wire.
//   token, consumer, then for each: entry, deliveries, id
// Replies: 1 or 0 (it must not be sent) for each.
extern const Script kIntend;

// How a job ended.
//   token, consumer, entry, deliveries, id, expected state, new state, attempts, result, dead
//   letter, reason
// Replies: 1 it is filed; 2 it was unknown, and is not any more; 0 it is late: another has the job.
extern const Script kFinish;

// A job has to wait. Without attempts and time: it was not sent, and another may take it at once.
//   token, consumer, entry, deliveries, id, expected state, attempts, time
// Replies: 1, or 0: another has the job.
extern const Script kWait;

// Gives back all that a worker has, and forgets it.
//   token, consumer
// Replies: how many jobs.
extern const Script kLeave;

// Moves jobs that are due back.
//   token, "", most
// Replies: how many.
extern const Script kTick;

// Some of the jobs that are unknown; one may come twice.
//   token, "", cursor ("0"), about how many
// Replies: the next cursor; for each: id, line, key, request.
extern const Script kUnknown;

// Queues jobs again that are unknown.
//   token, "", most
// Replies: how many.
extern const Script kRetry;

// Replies: the counts of q, s, w, d, x, u; late; poison; when the next that waits is due, from now
// (-1: none waits); the time; 1 if keys were lost or changed: a counter is no number, or jobs are
// counted that no worker can get any more.
extern const Script kNews;

[[nodiscard]] std::vector<const Script*> queue_scripts();

// The keys of the queue, in the order in which the scripts have them.
[[nodiscard]] std::vector<std::string> keys_of(const std::string& name);

}  // namespace httpretry::queue
