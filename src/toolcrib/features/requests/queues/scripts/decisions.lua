-- Decisions about requests, and queries.

-- Why the decision is refused, or nil.
local function undecidable(id)
  local status = status_of(id)
  if status == '' then return {outcome = 'unknown'} end
  for _, permitted in ipairs(given.permitted) do
    if status == permitted then return nil end
  end
  return {outcome = 'refused', status = status}
end

-- The oldest that follows a cancelled one is built in its place, from the beginning.
local function hand_over(id)
  local successors = with_followers(id, OPEN)
  table.remove(successors, 1)
  redis.call('HINCRBY', key(id), 'crib_requesters', -#successors)
  redis.call('HDEL', own('leaders'), get(id, 'crib_digest'))
  for _, successor in ipairs(successors) do
    set_leader(successor, '')
    turn(successor, 'pending')
    lead_or_follow(successor)
  end
  if successors[1] then note(successors[1], 'returned', id .. ' was cancelled') end
end

function commands.cancel()
  local id = given.id
  local refusal = undecidable(id)
  if refusal then return refusal end
  local leader = get(id, 'crib_leader')
  if leader == '' then hand_over(id) elseif is_known(leader) then redis.call('HINCRBY', key(leader), 'crib_requesters', -1) end
  put(id, 'crib_owner', '', 'crib_held', '', 'error', given.reason)
  turn(id, 'cancelled')
  note(id, 'cancelled', given.reason)
  changed()
  return {outcome = 'done', id = id}
end

-- A failed request comes back with all that failed with it.
local function to_bring_back(id)
  local first = leader_of(id)
  if status_of(id) ~= 'failed' or status_of(first) ~= 'failed' then return {id} end
  return with_followers(first, {failed = true})
end

function commands.retry()
  local id = given.id
  local refusal = undecidable(id)
  if refusal then return refusal end
  if get(id, 'crib_digest') == '' then return {outcome = 'unreadable'} end
  for _, member in ipairs(to_bring_back(id)) do
    put(member, 'error', '', 'tool', '', 'crib_requesters', 1)
    set_leader(member, '')
    turn(member, 'pending')
    note(member, 'retried', '')
    lead_or_follow(member)
  end
  changed()
  return {outcome = 'done', id = id}
end

-- The requests that are built together, or would be retried together.
local function to_allow(id)
  return OPEN[status_of(id)] and with_followers(leader_of(id), OPEN) or to_bring_back(id)
end

function commands.allow()
  local id = given.id
  local refusal = undecidable(id)
  if refusal then return refusal end
  for _, member in ipairs(to_allow(id)) do
    set_allowance(member, given.allowance)
    put(member, 'updated_at', stamp)
    note(member, 'allowed', '')
  end
  changed()
  return {outcome = 'done', id = id}
end

function commands.get()
  return is_known(given.id) and {id = given.id} or {}
end

-- Some requests from the newest of a status on, those that are older than `given.age`.
function commands.list()
  local names, rows, ids = given.statuses, {}, {}
  for _, status in ipairs(names) do
    local below = given.age == 0 and '+inf' or '(' .. string.format('%.0f', given.age)
    local some = redis.call('ZREVRANGEBYSCORE', own('by:') .. status, below, '-inf', 'WITHSCORES', 'LIMIT', 0, given.portion)
    for position = 1, #some, 2 do ids[#ids + 1] = {tonumber(some[position + 1]), some[position]} end
  end
  table.sort(ids, function(one, other) return one[1] > other[1] end)
  for position = 1, math.min(#ids, given.portion) do
    if is_known(ids[position][2]) then rows[#rows + 1] = record(ids[position][2]) end
  end
  local last = ids[math.min(#ids, given.portion)]
  return {more = #ids >= given.portion, age = last and last[1] or 0}, rows
end

function commands.find_open()
  for _, id in ipairs(redis.call('ZRANGE', own('open:') .. given.name, 0, -1)) do
    if OPEN[status_of(id)] and leader_of(id) == id then return {id = id} end
  end
  return {}
end

function commands.history()
  return {}, redis.call('LRANGE', own('history:') .. given.id, 0, -1)
end

function commands.experiments()
  local rows = {}
  for _, experiment in ipairs(redis.call('ZRANGE', own('experiments'), given.start, given.start + given.portion - 1)) do
    local ids, missing = redis.call('ZRANGE', own('named:') .. experiment, 0, -1), {}
    for _, id in ipairs(ids) do
      local waits_for = is_known(id) and redis.call('SISMEMBER', own('wanted:') .. experiment, id) == 1
      if waits_for then missing[#missing + 1] = get(id, 'crib_name') end
    end
    rows[#rows + 1] = {experiment, ids, missing, redis.call('HGET', own('released'), experiment) or ''}
  end
  return {}, rows
end

-- Nothing but the counter of changes, which every answer has.
function commands.changes()
  return {}
end
