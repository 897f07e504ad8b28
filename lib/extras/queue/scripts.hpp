// The scripts of a queue. Each is one atomic step. If its reply is lost, a script can be sent
// again, because it recognizes what was carried out before.
//
// A queue NAME has these keys. They share a hash tag, so a cluster keeps them on one node:
//
//   {hr:NAME}:s  stream of the jobs that may be taken, with the group "w"; an entry has the id
//   {hr:NAME}:z  sorted set of the ids that wait, by the time at which they are due
//   {hr:NAME}:j  hash of all jobs by id:
//                "state|attempts|since|line|holder|digest|length|key request"
//   {hr:NAME}:r  stream of results: i (the id) and l (the line)
//   {hr:NAME}:d  stream of dead letters, likewise
//   {hr:NAME}:m  hash of the properties of the queue: token, policy, n:STATE, late, poison
//   {hr:NAME}:u  set of the ids that are unknown
//
// The states are q (queued or taken), s (must not be sent twice, and may be in flight), w
// (waiting), d (done), x (dead) and u (unknown). `holder` identifies the delivery whose worker was
// the last to record that it sends the job, or to file its result: "CONSUMER ENTRY DELIVERIES".
// `length` is that of the key. Only the server's clock counts: times are its milliseconds since
// 1970, and callers pass durations.
//
// Each script gets all the keys, and the token of the queue as its first argument. If the queue was
// deleted or created again, the reply is an error that begins with "GONE". The second argument is
// the consumer that calls, or empty if that does not matter.
#pragma once

#include "lib/extras/fleet/link.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace httpretry::queue {

using fleet::Script;

// The second argument of a script if it does not matter which consumer (worker) calls.
inline constexpr const char* kNoConsumer = "";

// The keys of a queue, in the order of keys_of(): s, z, j, r, d, m, u.
enum class Key : std::uint8_t { Entries, Waiting, Jobs, Results, DeadLetters, Properties, Unknown };

// Opens the queue, and creates it if it does not exist and `make` is 1.
//   token (for a new queue), "", policy, make (0 or 1)
// Replies: the token; the policy with which the queue was created. Without a queue: nil.
extern const Script kOpen;

// Adds all jobs or none. Adds none if an id belongs to another request. A job that is in the queue
// with the same request stays as it is.
//   token, "", add (0: only compare), then for each: id, line, key, not before (ms, 0: none),
//   request
// Replies: how many were added; how many were in the queue; the index of each whose id belongs to
// another request.
extern const Script kEnqueue;

// Reads the jobs of entries that were delivered to a worker. A job that may have been sent, and
// must not be sent twice, becomes unknown.
//   token, consumer, then for each: entry, id
// Replies, for each that still belongs to the worker and is queued: entry, id, deliveries,
// attempts, since, line, key, request. `since` is when it may first have been sent; 0: it was not.
extern const Script kFetch;

// Takes over jobs of workers whose leases have ended.
//   token, consumer, lease, count, cursor ("0-0"), lifetime of consumers without jobs
// Replies: the next cursor; the jobs as in kFetch.
extern const Script kReap;

// Renews the leases of a worker.
//   token, consumer, then for each of its jobs, in the order of the entries: entry, deliveries
// Replies: the indexes of the jobs that still belong to the worker.
extern const Script kBeat;

// Records that jobs which must not be sent twice are about to be sent.
//   token, consumer, then for each: entry, deliveries, id
// Replies, for each: 1, or 0 if it must not be sent.
extern const Script kIntend;

// Files the result of a job.
//   token, consumer, entry, deliveries, id, expected state, new state, attempts, result, dead
//   letter, reason
// Replies: 1 if it is filed; 2 if it is filed and the job was unknown before; 0 if it is late,
// because another worker has the job.
extern const Script kFinish;

// Makes a job wait. Without attempts and time, the job was not sent and may be taken at once.
//   token, consumer, entry, deliveries, id, expected state, attempts, time
// Replies: 1, or 0 if another worker has the job.
extern const Script kWait;

// Gives back all jobs of a worker, and deletes its consumer.
//   token, consumer
// Replies: how many jobs were queued.
extern const Script kLeave;

// Queues jobs that have waited until their time.
//   token, "", most
// Replies: how many.
extern const Script kTick;

// Reads some of the unknown jobs. A job may occur twice.
//   token, "", cursor ("0"), about how many
// Replies: the next cursor; for each: id, line, key, request.
extern const Script kUnknown;

// Queues unknown jobs again.
//   token, "", most
// Replies: how many.
extern const Script kRetry;

// Reads the state of the whole queue.
//   token, ""
// Replies: the counts of q, s, w, d, x, u; late; poison; how long until the next waiting job is due
// (-1: none waits); the time; 1 if keys were lost or changed. In that case a counter is not a
// number, or the counters include jobs that no worker can get any more.
extern const Script kReadTotals;

[[nodiscard]] std::vector<const Script*> queue_scripts();

// Returns the keys of the queue, in the order of the scripts.
[[nodiscard]] std::vector<std::string> keys_of(const std::string& name);

}  // namespace httpretry::queue
