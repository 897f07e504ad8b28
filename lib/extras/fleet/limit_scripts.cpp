#include "limit_scripts.hpp"

namespace httpretry::fleet {

// Defines `now`, the server's time in microseconds since 2023-11-14, and keep(us), which makes
// KEYS[1] expire a second after that time.
#define HTTPRETRY_NOW                                                            \
  "local time = redis.call('TIME')\n"                                            \
  "local now = (tonumber(time[1]) - 1700000000) * 1000000 + tonumber(time[2])\n" \
  "local function keep(us) redis.call('PEXPIRE', KEYS[1], math.ceil(us / 1000) + 1000) end\n"

// The key stores `full`, the time at which all tokens will be available again. A token becomes
// available every `each` microseconds, so taking one moves `full` by that time. `first` is the time
// until the next token is available, negative if it is already.
const Script kTakeTokens = {HTTPRETRY_NOW R"lua(
local requests, per, burst = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local wanted, back, ahead = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local each = per / requests
local most = burst * each
-- kReserveTokens stores one number for each rate.
local full = tonumber(string.match(redis.call('GET', KEYS[1]) or '0', '%S+'))
-- More than this cannot have been taken, so the server's clock was set back.
if full > now + most + ahead then full = now + most + ahead end
if back > 0 and full > now then full = math.max(full - back * each, now) end
if full < now then full = now end
local count = math.floor((now + ahead + most - full) / each + 0.000001)
if count > wanted then count = wanted end
if count < 0 then count = 0 end
local first = full + each - most - now
full = full + count * each
if full > now then
  redis.call('SET', KEYS[1], string.format('%.3f', full), 'PX', math.ceil((full - now) / 1000) + 1000)
else
  redis.call('DEL', KEYS[1])
end
return {count, math.ceil(first), math.ceil(math.max(first - ahead, 0))}
)lua"};

// The key stores `full` of each rate, as in kTakeTokens, with spaces between. A reservation is
// always granted. It only moves `full`, so later ones may be used later: the order of the queries
// is the order of the sends.
const Script kReserveTokens = {HTTPRETRY_NOW R"lua(
local all = {}
for word in string.gmatch(redis.call('GET', KEYS[1]) or '', '%S+') do all[#all + 1] = tonumber(word) end
local latest, wait, stored = now, 0, {}
for i = 1, #ARGV / 5 do
  local requests, per, burst = tonumber(ARGV[5 * i - 4]), tonumber(ARGV[5 * i - 3]), tonumber(ARGV[5 * i - 2])
  local wanted, back = tonumber(ARGV[5 * i - 1]), tonumber(ARGV[5 * i])
  local each = per / requests
  local full = math.max((all[i] or 0) - back * each, now) + wanted * each
  if wanted > 0 then wait = math.max(wait, full - burst * each - now) end
  latest = math.max(latest, full)
  stored[i] = string.format('%.3f', full)
end
if latest > now then
  redis.call('SET', KEYS[1], table.concat(stored, ' '), 'PX', math.ceil((latest - now) / 1000) + 1000)
else
  redis.call('DEL', KEYS[1])
end
return {math.ceil(wait)}
)lua"};

// The key has one field for each process: "used wanted until". A process is forgotten at `until`.
// If the processes together want more than `max`, each gets its fair part as soon as the others no
// longer use it. `reserved` is what the others use, or want up to that part.
const Script kHoldSlots = {HTTPRETRY_NOW R"lua(
local max, process = tonumber(ARGV[1]), ARGV[2]
local used, wanted, lease = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local others, wants, count = {}, wanted, 1
local all = redis.call('HGETALL', KEYS[1])
for index = 1, #all, 2 do
  local its_used, its_wanted, till = string.match(all[index + 1], '(%d+) (%d+) (%d+)')
  if tonumber(till) <= now then
    redis.call('HDEL', KEYS[1], all[index])
  elseif all[index] ~= process then
    its_used, its_wanted = tonumber(its_used), tonumber(its_wanted)
    others[#others + 1] = {its_used, its_wanted}
    wants, count = wants + its_wanted, count + 1
  end
end
-- A process above its share keeps the slots that it uses. It gets no more while others want some.
local fair = math.max(math.floor(max / count), 1)
local reserved, taken = 0, 0
for _, one in ipairs(others) do
  taken = taken + one[1]
  reserved = reserved + math.max(one[1], math.min(one[2], fair))
end
local granted = math.min(wanted, math.max(fair, max - reserved), max - taken)
granted = math.max(granted, 0)
local held = math.max(granted, used)
if held > 0 or wanted > 0 then
  redis.call('HSET', KEYS[1], process, string.format('%d %d %.0f', held, wanted, now + lease))
  keep(lease)
else
  redis.call('HDEL', KEYS[1], process)
end
return {granted, count, wants > max and 1 or 0}
)lua"};

// The fields of KEYS[1]: state, until, generation, openings, closed_at, row (failures in a row) and
// good_probes; "w:" and the number of a tenth of the window, with "all good slow"; "p:" and a
// process, with the time at which its probe is given up; tripped, with "all good slow row" at the
// time it opened.
// KEYS[2] has a field for each circuit that is not closed: "state until generation openings tripped
// expiry".
//
// The table `h` has the fields of KEYS[1], and each change is made in both. The steps: (1) a closed
// circuit adds the votes to the window, and opens if too many failed; a half-open one counts the
// probe, and opens or closes. (2) If the caller wants a probe and the open time is over, the
// circuit becomes half-open, and the caller may probe unless enough probes are in flight. (3)
// Stores when the key expires, and the field in KEYS[2]. (4) The reply has the sums of the window,
// or those of `tripped`.
const Script kVote = {HTTPRETRY_NOW R"lua(
local kind, failure_ratio, min_requests = ARGV[1], tonumber(ARGV[2]) / 1000000, tonumber(ARGV[3])
local window, failures, slow_ratio = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]) / 1000000
local probes, probe_timeout = tonumber(ARGV[7]), tonumber(ARGV[8])
local votes_generation = tonumber(ARGV[9])
local all, good, slow = tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
local leading, trailing = tonumber(ARGV[13]), tonumber(ARGV[14])
local probes_good, probes_failed = tonumber(ARGV[15]), tonumber(ARGV[16])
local open_for, process, wants_probe = tonumber(ARGV[17]), ARGV[18], ARGV[19] == '1'

local h = {}
local fields = redis.call('HGETALL', KEYS[1])
for index = 1, #fields, 2 do h[fields[index]] = fields[index + 1] end
local function number(name) return tonumber(h[name] or '0') end
local state, till, generation = number('state'), number('until'), number('generation')
local openings, row, good_probes = number('openings'), number('row'), number('good_probes')
local function put(name, value)
  h[name] = string.format('%.0f', value)
  redis.call('HSET', KEYS[1], name, h[name])
end
local function drop(prefix)
  for name in pairs(h) do
    if string.sub(name, 1, 2) == prefix .. ':' then
      redis.call('HDEL', KEYS[1], name)
      h[name] = nil
    end
  end
end
local function change_to(new)
  state, row, good_probes = new, 0, 0
  generation = generation + 1
  put('state', state)
  put('generation', generation)
  put('row', 0)
  put('good_probes', 0)
  drop('w')
  drop('p')
end
local function open(all, good, slow, row)
  h.tripped = string.format('%d %d %d %d', all, good, slow, row)
  redis.call('HSET', KEYS[1], 'tripped', h.tripped)
  if state == 0 and openings > 0 then
    local quiet = math.floor((now - number('closed_at')) / math.max(window, 1))
    openings = math.max(openings - quiet, 0)
  end
  openings = openings + 1
  put('openings', openings)
  change_to(1)
  till = now + open_for
  put('until', till)
end

local length = math.max(math.floor(window / 10), 1)  -- of a tenth of the window
local tenth = math.floor(now / length)
local sums = {0, 0, 0}
local function add_up()
  sums = {0, 0, 0}
  for name, value in pairs(h) do
    local of = string.match(name, '^w:(%d+)$')
    if of and tonumber(of) > tenth - 10 and tonumber(of) <= tenth then
      local a, g, s = string.match(value, '(%d+) (%d+) (%d+)')
      sums = {sums[1] + a, sums[2] + g, sums[3] + s}
    elseif of then
      redis.call('HDEL', KEYS[1], name)
      h[name] = nil
    end
  end
end

if votes_generation == generation and state == 0 and all > 0 then
  local name = 'w:' .. string.format('%.0f', tenth)
  local a, g, s = string.match(h[name] or '0 0 0', '(%d+) (%d+) (%d+)')
  h[name] = string.format('%d %d %d', a + all, g + good, s + slow)
  redis.call('HSET', KEYS[1], name, h[name])
  local longest = math.max(row + leading, trailing)
  row = good > 0 and trailing or row + all
  put('row', row)
  add_up()
  local opens = kind ~= 'share' and failures > 0 and longest >= failures
  if kind == 'ratio' and sums[1] >= min_requests then
    local failed = sums[1] - sums[2]
    if failed >= failure_ratio * sums[1] then opens = true end
    if slow_ratio >= 0 and sums[3] >= slow_ratio * sums[1] then opens = true end
  end
  if opens then open(sums[1], sums[2], sums[3], longest) end
elseif votes_generation == generation and state == 2 and probes_good + probes_failed > 0 and
    h['p:' .. process] then
  redis.call('HDEL', KEYS[1], 'p:' .. process)
  h['p:' .. process] = nil
  good_probes = good_probes + probes_good
  put('good_probes', good_probes)
  if probes_failed > 0 then
    open(1, 0, 0, 1)
  elseif good_probes >= probes then
    change_to(0)
    put('closed_at', now)
  end
end

local probe = 0
if wants_probe and state ~= 0 and (state == 2 or now >= till) then
  if state == 1 then change_to(2) end
  local in_flight = 0
  for name, value in pairs(h) do
    if string.sub(name, 1, 2) == 'p:' then
      if tonumber(value) <= now then redis.call('HDEL', KEYS[1], name) else in_flight = in_flight + 1 end
    end
  end
  if in_flight + good_probes < probes then
    put('p:' .. process, now + probe_timeout)
    probe = 1
  end
end
add_up()
if #fields > 0 or next(h) ~= nil then
  local life = math.max(window * (openings + 1), till - now, probe_timeout) + window
  keep(life)
  if state == 0 then
    redis.call('HDEL', KEYS[2], ARGV[20])
  else
    redis.call('HSET', KEYS[2], ARGV[20], string.format('%d %.0f %.0f %d %s %.0f', state, till,
      generation, openings, h.tripped, now + life))
  end
end
if state ~= 0 then
  local a, g, s, r = string.match(h.tripped, '(%d+) (%d+) (%d+) (%d+)')
  sums, row = {tonumber(a), tonumber(g), tonumber(s)}, tonumber(r)
end
return {state, math.max(till - now, 0), generation, openings, sums[1], sums[2], sums[3], row, probe}
)lua"};

// The key is a sorted set of all pauses, with their ends as scores.
const Script kPause = {HTTPRETRY_NOW R"lua(
local till = now + tonumber(ARGV[2])
redis.call('ZADD', KEYS[1], 'GT', string.format('%.0f', till), ARGV[1])
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
keep(tonumber(last[2]) - now)
return math.max(tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1])) - now, 0)
)lua"};

// A missing key means that the budget is full.
const Script kBudget = {R"lua(
local capacity, taken, given = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local left = tonumber(redis.call('GET', KEYS[1]) or ARGV[1])
left = math.min(math.max(left - taken, 0) + given, capacity)
if left < capacity then
  redis.call('SET', KEYS[1], string.format('%.0f', left), 'PX', math.ceil(tonumber(ARGV[4]) / 1000))
else
  redis.call('DEL', KEYS[1])
end
return left
)lua"};

// The key has a field for each tenth of the window, named by its number, with the sum of its
// changes. Fields outside the window are deleted.
const Script kBudgetWindow = {HTTPRETRY_NOW R"lua(
local window, change = tonumber(ARGV[1]), tonumber(ARGV[2])
local tenth = math.floor(now / math.max(math.floor(window / 10), 1))
if change ~= 0 then
  redis.call('HINCRBY', KEYS[1], string.format('%.0f', tenth), string.format('%.0f', change))
  keep(window)
end
local sum = 0
local all = redis.call('HGETALL', KEYS[1])
for index = 1, #all, 2 do
  local of = tonumber(all[index])
  if of > tenth - 10 and of <= tenth then
    sum = sum + tonumber(all[index + 1])
  else
    redis.call('HDEL', KEYS[1], all[index])
  end
end
return sum
)lua"};

// The same calculation as in SendRate::update and SendRate::acquire (lib/core/retry/budget.cpp), in
// seconds: the cubic algorithm of congestion control. `measured` is the rate at which attempts end,
// taken every half second. A throttle lowers the rate to 0.7 of it, and the rate then grows along a
// cubic curve. `capacity` is the number of sends that may go out at once, and `fill` is how many a
// second adds.
const Script kSendRate = {HTTPRETRY_NOW R"lua(
local ended, throttled, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local seconds = now / 1000000
local h = {}
local fields = redis.call('HGETALL', KEYS[1])
for index = 1, #fields, 2 do h[fields[index]] = tonumber(fields[index + 1]) end
local enabled, fill, capacity = h.enabled or 0, h.fill or 0.5, h.capacity or 0
local measured, last_max, most = h.measured or 0, h.last_max or 0, h.most or 1
local bucket = math.floor(seconds * 2) / 2
local last_bucket, count = h.bucket or bucket, (h.count or 0) + ended
if bucket > last_bucket then
  measured = 0.8 * count / (bucket - last_bucket) + 0.2 * measured
  count, last_bucket = 0, bucket
end
if enabled == 1 then capacity = math.min(most, capacity + (seconds - h.refilled) * fill) end
local rate
if throttled > 0 then
  last_max = enabled == 1 and math.min(measured, fill) or measured
  h.throttled_at, enabled, rate = seconds, 1, 0.7 * last_max
elseif enabled == 1 and ended > 0 then
  local since = seconds - h.throttled_at - (last_max * 0.3 / 0.4) ^ (1 / 3)
  rate = 0.4 * since * since * since + last_max
end
if rate then
  rate = math.min(rate, 2 * measured)
  fill, most = math.max(rate, 0.5), math.max(rate, 1)
  capacity = math.min(capacity, most)
end
local granted, wait = 0, 0
if enabled == 1 then
  granted = math.max(math.min(wanted, math.floor(capacity + 0.000001)), 0)
  capacity = math.max(capacity - granted, 0)
  if granted == 0 then wait = math.max((1 - capacity) / fill, 0) end
end
local function text(number) return string.format('%.6f', number) end
redis.call('HSET', KEYS[1], 'enabled', enabled, 'fill', text(fill), 'capacity', text(capacity),
  'most', text(most), 'measured', text(measured), 'last_max', text(last_max), 'bucket',
  text(last_bucket), 'count', count, 'refilled', text(seconds), 'throttled_at',
  text(h.throttled_at or 0))
keep(600000000)
return {enabled, granted, math.ceil(wait * 1000000)}
)lua"};

// Stores the fields of kVote for an open circuit, with no votes as the cause. kVote resets the
// counts when the circuit becomes half-open. The keys expire a day after its end: the next process
// that votes then renews them.
const Script kOpenCircuit = {HTTPRETRY_NOW R"lua(
local duration = tonumber(ARGV[1])
local till = now + duration
redis.call('HINCRBY', KEYS[1], 'generation', 1)
local openings = tonumber(redis.call('HGET', KEYS[1], 'openings') or '0')
redis.call('HSET', KEYS[1], 'state', 1, 'until', string.format('%.0f', till), 'tripped', '0 0 0 0')
keep(duration + 86400000000)
redis.call('HSET', KEYS[2], ARGV[2], string.format('1 %.0f %s %d 0 0 0 0 %.0f', till,
  redis.call('HGET', KEYS[1], 'generation'), openings, till + 86400000000))
return 1
)lua"};

const Script kForget = {R"lua(
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
redis.call('HDEL', KEYS[4], ARGV[1])
redis.call('ZREM', KEYS[5], ARGV[1])
return 1
)lua"};

// KEYS[1] is a sorted set of the processes, with the ends of their leases as scores. KEYS[3] has
// the fields that kVote states for its KEYS[2]: nine numbers, of which the last is the time at
// which the field expires. Deletes what has expired.
const Script kSnapshot = {HTTPRETRY_NOW R"lua(
redis.call('ZADD', KEYS[1], string.format('%.0f', now + tonumber(ARGV[2])), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
keep(tonumber(ARGV[2]))
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now))
local pauses = {}
local all = redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')
for index = 1, #all, 2 do
  pauses[#pauses + 1] = all[index]
  pauses[#pauses + 1] = tonumber(all[index + 1]) - now
end
local circuits = {}
all = redis.call('HGETALL', KEYS[3])
for index = 1, #all, 2 do
  local numbers = {}
  for number in string.gmatch(all[index + 1], '%d+') do numbers[#numbers + 1] = tonumber(number) end
  if numbers[9] <= now then
    redis.call('HDEL', KEYS[3], all[index])
  else
    numbers[2] = math.max(numbers[2] - now, 0)
    circuits[#circuits + 1] = all[index]
    for field = 1, 8 do circuits[#circuits + 1] = numbers[field] end
  end
end
redis.call('SETNX', KEYS[4], ARGV[3])
return {redis.call('ZCARD', KEYS[1]), pauses, circuits, redis.call('GET', KEYS[4])}
)lua"};

#undef HTTPRETRY_NOW

std::vector<const Script*> limit_scripts() {
  return {&kTakeTokens,   &kReserveTokens, &kHoldSlots, &kVote,   &kPause,   &kBudget,
          &kBudgetWindow, &kOpenCircuit,   &kSendRate,  &kForget, &kSnapshot};
}

}  // namespace httpretry::fleet
