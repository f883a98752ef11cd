-- Builds of requests: claim, lease, finish and fail.

local function set_free(id, reason)
  put(id, 'crib_owner', '', 'crib_held', '')
  turn_all(id, 'pending')
  note(id, 'returned', reason)
end

local function lease(id)
  redis.call('ZADD', own('leases'), now + given.lease, id)
  put(id, 'crib_lease', given.lease)
end

-- Whether its lease is alive; a clock that is set back does not extend a lease.
local function is_leased(id)
  local left = tonumber(redis.call('ZSCORE', own('leases'), id) or now) - now
  return left > 0 and left <= (tonumber(get(id, 'crib_lease')) or 0)
end

-- Requests whose lease expired. Their Builder may still renew it, until another one claims them.
local function abandoned()
  local ids = {}
  for _, id in ipairs(redis.call('ZRANGE', own('leases'), 0, -1)) do
    if status_of(id) ~= 'building' then
      redis.call('ZREM', own('leases'), id)
    elseif not is_leased(id) then
      ids[#ids + 1] = id
    end
  end
  return ids
end

local function first_pending()
  while true do
    local id = redis.call('ZRANGE', own('pending'), 0, 0)[1]
    if not id or status_of(id) == 'pending' then return id end
    redis.call('ZREM', own('pending'), id) -- its hash was deleted, or damaged
  end
end

local function next_to_build()
  local first = first_pending()
  for _, id in ipairs(abandoned()) do
    if not first or place_in_order(id) < place_in_order(first) then first = id end
  end
  return first
end

-- This request, or the one that is built in its place, unless it is leased or over.
local function asked_for(id)
  id = leader_of(id)
  if not OPEN[status_of(id)] or is_leased(id) then return nil end
  return id
end

-- Publish it on a channel of the original Builder, in its format.
local function say_original(channel, kind, id)
  if not given.original then return end
  local said = {type = kind, source = 'toolcrib', timestamp = stamp, request_id = id, tool_name = get(id, 'crib_name')}
  if get(id, 'error') ~= '' then said.error = get(id, 'error') end
  redis.call('PUBLISH', given.original[channel], cjson.encode(said))
end

function commands.claim()
  if given.id ~= '' and not OPEN[status_of(given.id)] then return {fence = 0} end
  local id
  if given.id ~= '' then id = asked_for(given.id) else id = next_to_build() end
  if not id then return {fence = 0} end
  local fence = redis.call('HINCRBY', key(id), 'crib_fence', 1)
  local attempts = redis.call('HINCRBY', key(id), 'crib_attempts', 1)
  put(id, 'crib_owner', given.owner, 'crib_held', '')
  turn_all(id, 'building')
  lease(id)
  note(id, 'building', given.owner)
  say_original('orchestrator', 'builder_started', id)
  changed()
  return {id = id, fence = fence, attempts = attempts}
end

-- A follower has the status building too, but no Builder: an earlier claim of it does not count. A hash that was deleted and
-- created again counts its claims from 1, so the owner has to match too.
local function is_held_by_claim(id)
  if status_of(id) ~= 'building' or get(id, 'crib_held') == '1' or leader_of(id) ~= id then return false end
  return tonumber(get(id, 'crib_fence')) == given.fence and get(id, 'crib_owner') == given.owner
end

-- Run a command if the claim is still held; otherwise do nothing. `ended` are the requests that are over by it.
local function as_builder(act)
  return function()
    if not is_held_by_claim(given.id) then return {done = false} end
    return {done = true, ended = act(given.id)}
  end
end

commands.renew = as_builder(function(id)
  lease(id)
  mend(id)
end)

commands.note = as_builder(function(id)
  note(id, given.step, given.text)
  changed()
end)

commands.hold = as_builder(function(id)
  put(id, 'crib_owner', '', 'crib_held', '1', 'updated_at', stamp)
  index(id)
  note(id, 'held', given.text)
  changed()
end)

commands.give_back = as_builder(function(id)
  set_free(id, given.text)
  changed()
end)

local function over(members, status)
  redis.call('HDEL', own('leaders'), get(members[1], 'crib_digest'))
  for _, id in ipairs(members) do
    put(id, 'crib_owner', '', 'crib_held', '', 'error', given.error or '', 'tool', given.tool or '')
    turn(id, status)
    note(id, status, given.tool or given.error)
  end
end

-- Release the experiments that wait for this content; those that wait for nothing else.
local function release(digest)
  local waiting, released = redis.call('SMEMBERS', own('waiting:') .. digest), {}
  table.sort(waiting)
  for _, edge in ipairs(waiting) do
    local id, experiment = string.match(edge, '^(%S+) (.*)$')
    redis.call('SREM', own('wanted:') .. experiment, id)
    if is_known(id) then note(id, 'released', experiment) end
    if redis.call('EXISTS', own('wanted:') .. experiment) == 0 then
      if redis.call('HSETNX', own('released'), experiment, stamp) == 1 then released[#released + 1] = experiment end
    end
  end
  redis.call('DEL', own('waiting:') .. digest)
  return released
end

-- The original kept its experiments in a set per tool, of which it let go one per build, and its tools in hashes.
local function release_original(id, released)
  if not given.original then return end
  local name = get(id, 'crib_name')
  redis.call('HSET', given.original.tools .. name, 'name', name, 'status', 'active', 'created_at', stamp, unpack(given.facts))
  local members = redis.call('SMEMBERS', given.original.experiments .. name)
  redis.call('DEL', given.original.experiments .. name)
  table.sort(members)
  for _, experiment in ipairs(members) do
    local message = {experiment_id = experiment, triggered_by = 'toolcrib', timestamp = stamp}
    redis.call('PUBLISH', given.original.execute, cjson.encode(message))
    released[#released + 1] = experiment
    note(id, 'released', experiment)
  end
end

local function spell_list(texts)
  local spelled = {}
  for position, text in ipairs(texts) do spelled[position] = cjson.encode(text) end
  return '[' .. table.concat(spelled, ',') .. ']' -- cjson would write an empty list as an object
end

local function publish_ready(id, released)
  local experiment = get(id, 'crib_experiment')
  local payload = '{"request_id":' .. cjson.encode(id) .. ',' .. given.made
    .. ',"experiment":' .. (experiment == '' and 'null' or cjson.encode(experiment))
    .. ',"experiments":' .. spell_list(released) .. '}'
  put(id, 'crib_ready', payload)
  redis.call('PUBLISH', given.ready, payload)
  say_original('results', 'tool_built', id)
  say_original('orchestrator', 'builder_completed', id)
end

commands.finish = as_builder(function(id)
  local members = with_followers(id, OPEN)
  over(members, 'ready')
  local released = release(get(id, 'crib_digest'))
  release_original(id, released)
  for position, member in ipairs(members) do publish_ready(member, position == 1 and released or {}) end
  changed()
  return members
end)

commands.fail = as_builder(function(id)
  local members = with_followers(id, OPEN)
  over(members, 'failed')
  for _, member in ipairs(members) do
    say_original('results', 'tool_build_failed', member)
    say_original('orchestrator', 'builder_failed', member)
  end
  changed()
  return members
end)

-- Return requests whose lease expired to the queue.
function commands.sweep()
  local left = abandoned()
  for _, id in ipairs(left) do set_free(id, given.silent) end
  if #left > 0 then changed() end
  return {swept = #left}
end
