#include "scripts.hpp"

#include <deque>

namespace httpretry::queue {
namespace {

// The server does not undo a script that fails halfway. So steps that a full server refuses, such
// as `move`, come before those that it allows, such as `drop`.
//
// `read` and `write` convert a job from and to a table. `move` changes the state of a job, and the
// counters of the states. `deliveries` returns how often an entry was delivered, or nil if the
// consumer does not have it any more. `drop` removes an entry, and `offer` adds one.
// `sent_elsewhere` returns whether a worker is sending the job that received it with another entry.
//
// `owned` returns the job of ARGV[2] to ARGV[6] and 'mine' if it still belongs to the worker. It
// returns the job and 'unknown' if the worker recorded that it sends the job, and another worker
// then found that its lease had ended: the worker may still file its result. It returns the job and
// 'again' if this command was carried out before. Otherwise it returns nil. The expected state is
// '*' if the worker does not know whether its intent was recorded. A job may have two entries, so a
// job that is being sent belongs to its holder alone.
//
// `deliver` adds the job of an entry that was delivered to `found` if the job may be sent.
constexpr char kCommon[] = R"lua(
local S, Z, J, R, D, M, U = unpack(KEYS)
if ARGV[1] ~= redis.call('HGET', M, 'token') then
  return redis.error_reply('GONE the queue is not there any more')
end
local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local function read(id)
  local text = redis.call('HGET', J, id)
  if not text then return nil end
  local state, attempts, since, line, holder, digest, length, at =
    string.match(text, '^(%a)|(%d+)|(%d+)|(%d+)|([^|]*)|(%x*)|(%d+)|()')
  if not at then return nil end  -- not written by us
  local rest = at + tonumber(length)
  return {id = id, state = state, attempts = attempts, since = since, line = line, holder = holder,
    digest = digest, key = string.sub(text, at, rest - 1), request = string.sub(text, rest)}
end
local function write(job)
  redis.call('HSET', J, job.id, table.concat({job.state, job.attempts, job.since, job.line,
    job.holder, job.digest, #job.key, job.key .. job.request}, '|'))
end
local function move(job, state)
  redis.call('HINCRBY', M, 'n:' .. job.state, -1)
  redis.call('HINCRBY', M, 'n:' .. state, 1)
  if state == 'u' then redis.call('SADD', U, job.id) end
  if job.state == 'u' and state ~= 'u' then redis.call('SREM', U, job.id) end
  job.state = state
end
local function deliveries(entry, consumer)
  local found = redis.call('XPENDING', S, 'w', entry, entry, 1, consumer)[1]
  return found and found[4]
end
local function drop(entry)
  redis.call('XACK', S, 'w', entry)
  redis.call('XDEL', S, entry)
end
local function offer(id) redis.call('XADD', S, '*', 'i', id) end
local function holder(consumer, entry, count) return consumer .. ' ' .. entry .. ' ' .. count end
local function sent_elsewhere(job, entry)
  local its = job.state == 's' and string.match(job.holder, ' (%S+) %d+$')
  return its and its ~= entry and #redis.call('XPENDING', S, 'w', its, its, 1) > 0
end
local function owned()
  local job = read(ARGV[5])
  if not job then
    drop(ARGV[3])
    return nil
  end
  local holds = job.holder == holder(ARGV[2], ARGV[3], ARGV[4])
  local expected = job.state == ARGV[6] or
    (ARGV[6] == '*' and (job.state == 'q' or job.state == 's'))
  if expected and (holds or job.state ~= 's') and
    deliveries(ARGV[3], ARGV[2]) == tonumber(ARGV[4]) then return job, 'mine' end
  if not holds or job.state == 's' then return nil end
  if job.state == 'u' and ARGV[6] ~= 'q' then return job, 'unknown' end
  return job, 'again'
end
local function deliver(entry, id, consumer, found)
  local count = deliveries(entry, consumer)
  if not count then return end
  redis.call('XCLAIM', S, 'w', consumer, 0, entry, 'JUSTID')
  local job = read(id)
  if job and job.state == 's' and not sent_elsewhere(job, entry) then
    move(job, 'u')
    write(job)
  end
  if not job or job.state ~= 'q' then return drop(entry) end
  found[#found + 1] = {entry, id, count, tonumber(job.attempts), tonumber(job.since),
    tonumber(job.line), job.key, job.request}
  if job.key ~= '' and job.since == '0' then
    job.since = string.format('%.0f', now())
    write(job)
  end
end
)lua";

// Returns the script that has kCommon before `text`. Its text lives as long as the program.
Script with_common(const char* text) {
  static std::deque<std::string> texts;  // a deque does not move its elements
  return {texts.emplace_back(std::string(kCommon) + text).c_str()};
}

}  // namespace

// Creates the group "w" of the stream if it is missing, even if the queue exists, because the
// stream may have been lost. A full server refuses that, but lets an existing queue be opened. The
// value false becomes the reply nil.
const Script kOpen = {R"lua(
local S, M = KEYS[1], KEYS[6]
local token = redis.call('HGET', M, 'token')
if not token and ARGV[4] ~= '1' then return false end
if redis.pcall('XPENDING', S, 'w').err then  -- no such group
  local made = redis.pcall('XGROUP', 'CREATE', S, 'w', '0', 'MKSTREAM')
  if made.err then return made end
end
if not token then
  token = ARGV[1]
  redis.call('HSET', M, 'token', token, 'policy', ARGV[3])
end
return {token, redis.call('HGET', M, 'policy')}
)lua"};

// First compares each job with the queue: `fresh` has the arguments of jobs that are not in it,
// `here` counts those that are in it with the same request, and `other` has the indexes of those
// whose ids belong to other requests. Then adds the fresh ones, unless there is any of the last
// kind.
const Script kEnqueue = with_common(R"lua(
local fresh, here, other = {}, 0, {}
for at = 4, #ARGV, 5 do
  local digest = redis.sha1hex(ARGV[at + 4])
  local known = read(ARGV[at])
  if not known then
    fresh[#fresh + 1] = at
  elseif known.digest == digest then
    here = here + 1
  else
    other[#other + 1] = (at - 4) / 5
  end
end
if ARGV[3] == '1' and #other == 0 then
  local time = now()
  for _, at in ipairs(fresh) do
    local due = tonumber(ARGV[at + 3])
    local job = {id = ARGV[at], state = due > time and 'w' or 'q', attempts = '0', since = '0',
      line = ARGV[at + 1], holder = '', digest = redis.sha1hex(ARGV[at + 4]), key = ARGV[at + 2],
      request = ARGV[at + 4]}
    write(job)
    redis.call('HINCRBY', M, 'n:' .. job.state, 1)
    if job.state == 'w' then
      redis.call('ZADD', Z, string.format('%.0f', due), job.id)
    else
      offer(job.id)
    end
  end
end
return {#fresh, here, other}
)lua");

const Script kFetch = with_common(R"lua(
local found = {}
for at = 3, #ARGV, 2 do deliver(ARGV[at], ARGV[at + 1], ARGV[2], found) end
return found
)lua");

// XAUTOCLAIM gives this consumer the entries that were idle for the length of a lease, and replies
// with a cursor and these entries. A full server refuses HINCRBY, and so fails before anything is
// claimed. At the end, deletes old consumers, because a worker that starts again is a new consumer.
const Script kReap = with_common(R"lua(
redis.call('HINCRBY', M, 'reaps', 1)
local claimed = redis.call('XAUTOCLAIM', S, 'w', ARGV[2], ARGV[3], ARGV[5], 'COUNT', ARGV[4])
local found = {}
for _, entry in ipairs(claimed[2]) do
  if entry then deliver(entry[1], entry[2][2], ARGV[2], found) end
end
for _, one in ipairs(redis.call('XINFO', 'CONSUMERS', S, 'w')) do
  local about = {}
  for at = 1, #one, 2 do about[one[at]] = one[at + 1] end
  if about.pending == 0 and about.idle > tonumber(ARGV[6]) and about.name ~= ARGV[2] then
    redis.call('XGROUP', 'DELCONSUMER', S, 'w', about.name)
  end
end
return {claimed[1], found}
)lua");

// `mine` has the entries that this consumer still has, with the number of their deliveries. Only
// these are renewed, by XCLAIM, which sets their idle time to 0. XCLAIM alone would also take back
// jobs that another worker has taken over.
const Script kBeat = with_common(R"lua(
local mine = {}
for _, one in ipairs(redis.call('XPENDING', S, 'w', ARGV[3], ARGV[#ARGV - 1], 100000, ARGV[2])) do
  mine[one[1]] = one[4]
end
local claim, renewed = {'XCLAIM', S, 'w', ARGV[2], 0}, {}
for at = 3, #ARGV, 2 do
  if mine[ARGV[at]] == tonumber(ARGV[at + 1]) then
    claim[#claim + 1] = ARGV[at]
    renewed[#renewed + 1] = (at - 3) / 2
  end
end
if #renewed > 0 then
  claim[#claim + 1] = 'JUSTID'
  redis.call(unpack(claim))
end
return renewed
)lua");

// A job may be sent if it still belongs to this delivery, and was queued or recorded by the same
// delivery before, in a command whose reply was lost.
const Script kIntend = with_common(R"lua(
local may = {}
for at = 3, #ARGV, 3 do
  local job = read(ARGV[at + 2])
  local mine = job and deliveries(ARGV[at], ARGV[2]) == tonumber(ARGV[at + 1])
  local me = holder(ARGV[2], ARGV[at], ARGV[at + 1])
  if mine and job.state == 'q' then
    move(job, 's')
    job.holder = me
    write(job)
  end
  may[#may + 1] = mine and job.state == 's' and job.holder == me and 1 or 0
end
return may
)lua");

// Decides by owned() whether the result counts. Deletes the request of a job that has ended, and
// keeps its digest, which recognizes the request.
const Script kFinish = with_common(R"lua(
local job, how = owned()
local unknown = ARGV[7] == 'u'
if how == 'again' and job.state == ARGV[7] then
  return 1
elseif not job or how == 'again' or (how == 'unknown' and unknown) then
  redis.call('HINCRBY', M, 'late', 1)
  return 0
end
move(job, ARGV[7])
job.attempts = ARGV[8]
job.holder = holder(ARGV[2], ARGV[3], ARGV[4])
if not unknown then
  job.request, job.key = '', ''
  redis.call('XADD', R, '*', 'i', job.id, 'l', ARGV[9])
end
if ARGV[7] == 'x' then redis.call('XADD', D, '*', 'i', job.id, 'l', ARGV[10]) end
if ARGV[11] == 'poison' then redis.call('HINCRBY', M, 'poison', 1) end
write(job)
if how == 'unknown' then return 2 end
drop(ARGV[3])
return 1
)lua");

// Without a time, the job is queued at once, and is offered to all workers again.
const Script kWait = with_common(R"lua(
local job, how = owned()
if how == 'again' then return 1 end
if not job then return 0 end
local time = ARGV[8]
move(job, time and 'w' or 'q')
job.attempts = ARGV[7] or job.attempts
job.holder = holder(ARGV[2], ARGV[3], ARGV[4])
write(job)
if time then
  redis.call('ZADD', Z, string.format('%.0f', now() + tonumber(time)), job.id)
else
  offer(job.id)
end
if how == 'mine' then drop(ARGV[3]) end
return 1
)lua");

// A job that this worker may have sent becomes unknown. One that it has not sent is offered to all
// workers again.
const Script kLeave = with_common(R"lua(
local count = 0
while true do
  local all = redis.call('XPENDING', S, 'w', '-', '+', 100, ARGV[2])
  if #all == 0 then break end
  for _, one in ipairs(all) do
    local entry = redis.call('XRANGE', S, one[1], one[1])[1]
    local job = entry and read(entry[2][2])
    if job and job.state == 's' and not sent_elsewhere(job, one[1]) then
      move(job, 'u')
      write(job)
    elseif job and job.state == 'q' then
      offer(job.id)
      count = count + 1
    end
    drop(one[1])
  end
end
redis.call('XGROUP', 'DELCONSUMER', S, 'w', ARGV[2])
return count
)lua");

// Leaves out an id whose job is not waiting any more, for example after it was changed by hand.
const Script kTick = with_common(R"lua(
local due = redis.call('ZRANGEBYSCORE', Z, '-inf', string.format('%.0f', now()), 'LIMIT', 0, ARGV[3])
for _, id in ipairs(due) do
  local job = read(id)
  if job and job.state == 'w' then
    move(job, 'q')
    write(job)
    offer(id)
  end
  redis.call('ZREM', Z, id)
end
return #due
)lua");

const Script kUnknown = with_common(R"lua(
local page = redis.call('SSCAN', U, ARGV[3], 'COUNT', ARGV[4])
local found = {}
for _, id in ipairs(page[2]) do
  local job = read(id)
  if job and job.state == 'u' then
    found[#found + 1] = {id, tonumber(job.line), job.key, job.request}
  end
end
return {page[1], found}
)lua");

// Removes the holder, so that it cannot file a result any more. The age of a key counts from now,
// as in a batch.
const Script kRetry = with_common(R"lua(
local count = 0
for _, id in ipairs(redis.call('SRANDMEMBER', U, ARGV[3])) do
  local job = read(id)
  if job and job.state == 'u' then
    move(job, 'q')
    job.holder = ''
    job.since = job.key ~= '' and string.format('%.0f', now()) or '0'
    write(job)
    offer(id)
    count = count + 1
  else
    redis.call('SREM', U, id)
  end
end
return count
)lua");

// Each state has a counter in the properties. The queue is damaged if a counter is not a number, or
// if the counters and the jobs differ although no worker has anything left to do. Every job that is
// queued or being sent has an entry. While there are both jobs and entries, workers can continue,
// so nothing else is checked.
const Script kReadTotals = with_common(R"lua(
local names = {'n:q', 'n:s', 'n:w', 'n:d', 'n:x', 'n:u', 'late', 'poison'}
local reply, total, damaged = {}, 0, false
for at, value in ipairs(redis.call('HMGET', M, unpack(names))) do
  value = value or '0'
  damaged = damaged or not string.match(value, '^-?%d+$')
  reply[at] = tonumber(value) or 0
  if at <= 6 then total = total + reply[at] end
end
local entries, left = redis.call('XLEN', S), reply[1] + reply[2]
if entries == 0 or left <= 0 then
  damaged = damaged or (entries == 0 and left > 0) or total ~= redis.call('HLEN', J)
end
local time = now()
local first = redis.call('ZRANGE', Z, 0, 0, 'WITHSCORES')
reply[9] = first[2] and math.max(tonumber(first[2]) - time, 0) or -1
reply[10] = time
reply[11] = damaged and 1 or 0
return reply
)lua");

std::vector<const Script*> queue_scripts() {
  return {&kOpen, &kEnqueue, &kFetch, &kReap,    &kBeat,  &kIntend,    &kFinish,
          &kWait, &kLeave,   &kTick,  &kUnknown, &kRetry, &kReadTotals};
}

std::vector<std::string> keys_of(const std::string& name) {
  const auto tag = "{hr:" + name + "}:";
  return {tag + "s", tag + "z", tag + "j", tag + "r", tag + "d", tag + "m", tag + "u"};
}

}  // namespace httpretry::queue
