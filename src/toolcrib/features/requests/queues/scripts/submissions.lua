-- Submission of requests, by our own clients and by foreign ones.

-- Make the experiment wait for the request, unless it did before.
local function waits(experiment, id)
  if experiment == '' then return end
  local age = tonumber(get(id, 'crib_age'))
  redis.call('ZADD', own('experiments'), 'NX', age, experiment)
  if redis.call('ZADD', own('named:') .. experiment, 'NX', age, id) == 0 then return end
  redis.call('SADD', own('waiting:') .. get(id, 'crib_digest'), id .. ' ' .. experiment)
  redis.call('SADD', own('wanted:') .. experiment, id)
  redis.call('HDEL', own('released'), experiment)
end

local function share_priority(leader, priority)
  local members = followers(leader)
  table.insert(members, leader)
  for _, id in ipairs(members) do
    if RANKS[priority] < RANKS[get(id, 'crib_priority')] then
      put(id, 'crib_priority', priority, 'updated_at', stamp)
      index(id)
    end
  end
end

local function follow(id, leader)
  set_leader(id, leader)
  put(id, 'error', '', 'crib_requesters', 1)
  set_allowance(id, allowance_of(leader))
  redis.call('HINCRBY', key(leader), 'crib_requesters', 1)
  turn(id, status_of(leader))
  share_priority(leader, get(id, 'crib_priority'))
  share_priority(leader, get(leader, 'crib_priority'))
  note(id, 'merged', leader)
end

-- Make it a leader, or a follower if the same content is open.
local function lead_or_follow(id)
  local leader = open_for(get(id, 'crib_digest'))
  if leader and leader ~= id then return follow(id, leader) end
  redis.call('HSET', own('leaders'), get(id, 'crib_digest'), id)
end

local function next_number()
  local number = tonumber(redis.call('HGET', own('numbers'), today) or 0)
  local id
  repeat
    number = number + 1
    if number > given.numbers then return nil end
    id = string.format('req_%s_%03d', today, number)
  until redis.call('EXISTS', key(id)) == 0
  redis.call('HSET', own('numbers'), today, number)
  return id
end

local function create(id, text, status)
  local age = redis.call('INCR', own('count'))
  local created = get(id, 'created_at')
  if not string.match(created, '^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d[%d.]*Z$') then created = stamp end
  put(
    id, 'status', status, 'yaml', text, 'created_at', created, 'updated_at', stamp, 'error', '', 'tool', '',
    'crib_status', status, 'crib_text', text, 'crib_age', age, 'crib_name', given.name, 'crib_digest', given.digest,
    'crib_priority', given.priority, 'crib_experiment', given.experiment, 'crib_leader', '', 'crib_owner', '',
    'crib_held', '', 'crib_fence', 0, 'crib_attempts', 0, 'crib_requesters', 1, 'crib_events', 0
  )
  -- There may have been one of that id before.
  redis.call('DEL', own('history:') .. id)
  redis.call('HDEL', own('allowances'), id)
  index(id)
end

-- The text that a foreign client wrote into the hash, in either layout, and its length; one that is too long is not read.
local function foreign(id)
  for _, field in ipairs({'yaml', 'spec'}) do
    local length = tonumber(redis.pcall('HSTRLEN', key(id), field)) or 0
    if length > given.longest then return '', length end
    if length > 0 then return get(id, field), length end
  end
  return '', 0
end

local HOLDS_REQUEST = {none = true, hash = true}

-- What the key of the id holds already: "known", "taken" by another text, "occupied" by something else, or nil.
local function standing(id, text)
  if not HOLDS_REQUEST[redis.call('TYPE', key(id)).ok] then return 'occupied' end
  if not is_known(id) then
    local other, length = foreign(id)
    return length > 0 and not same_text(other, text) and 'taken' or nil
  end
  if same_text(get(id, 'crib_text'), text) then
    if mend(id) then changed() end
    return 'known'
  end
  if given.heard and refuse_text(id, redis.sha1hex(text)) then changed() end
  return 'taken'
end

function commands.file()
  local id = given.id
  local before = id ~= '' and standing(id, given.text)
  if before then return {outcome = before, id = id} end
  local leader = open_for(given.digest)
  if leader and id == '' then
    redis.call('HINCRBY', key(leader), 'crib_requesters', 1)
    share_priority(leader, given.priority)
    waits(given.experiment, leader)
    note(leader, 'merged', '')
    changed()
    return {outcome = 'merged', id = leader}
  end
  local text = given.text
  if id == '' then
    id = next_number()
    if not id then return {outcome = 'full', day = today} end
    text = given.text .. id .. given.rest
  end
  create(id, text, 'pending')
  note(id, 'filed', '')
  waits(given.experiment, id)
  lead_or_follow(id)
  if not given.heard then
    -- Listeners of ours need not store again what they know; a script is atomic, so that nothing comes between the two messages.
    redis.call('PUBLISH', own('changed'), redis.sha1hex(text) .. ' ' .. id)
    redis.call('PUBLISH', given.requests, text)
  end
  changed()
  return {outcome = 'filed', id = id}
end

-- Store an unreadable request as failed, so that its sender can see why.
function commands.reject()
  local id = given.id
  local before = (given.heard or is_known(id)) and standing(id, given.text)
  if before then return {outcome = before, id = id} end
  create(id, given.heard and given.text or (foreign(id)), 'failed')
  put(id, 'error', given.error)
  note(id, 'failed', given.error)
  changed()
  return {outcome = 'rejected', id = id}
end

-- A foreign request to accept, or nil; a client that writes the status first writes the text a little later.
local function foreign_request(id)
  local status = get(id, 'status')
  if status == '' then status = get(id, 'state') end
  local text, length = foreign(id)
  return status == 'pending' and length > 0 and {id, text, length} or nil
end

local function is_listed(id)
  local status = status_of(id)
  if not redis.call('ZSCORE', own('by:') .. status, id) then return false end
  return status ~= 'pending' or get(id, 'crib_leader') ~= '' or redis.call('ZSCORE', own('pending'), id) ~= false
end

-- Whether the indexes lead to its Builder, or to its place in the queue.
local function is_reachable(id)
  local leader = get(id, 'crib_leader')
  if leader ~= '' then return leader_of(id) == leader and redis.call('ZSCORE', own('followers:') .. leader, id) ~= false end
  if not open_for(get(id, 'crib_digest')) then return false end
  local is_leased = status_of(id) == 'building' and get(id, 'crib_held') == ''
  return not is_leased or redis.call('ZSCORE', own('leases'), id) ~= false
end

-- Restore index entries whose keys were deleted; true if any were missing.
local function recover(id)
  local is_open, age = OPEN[status_of(id)], tonumber(get(id, 'crib_age'))
  local listed, reachable = is_listed(id), not is_open or is_reachable(id)
  if listed and reachable then return false end
  if age > tonumber(redis.call('GET', own('count')) or 0) then redis.call('SET', own('count'), age) end
  index(id)
  if not is_open then return true end
  waits(get(id, 'crib_experiment'), id)
  local leader = get(id, 'crib_leader')
  if leader ~= '' and leader_of(id) == leader then
    set_leader(id, leader)
    return true
  end
  if leader ~= '' then
    set_leader(id, '')
    turn(id, 'pending')
  end
  if status_of(id) == 'building' and get(id, 'crib_held') == '' then
    redis.call('ZADD', own('leases'), 'NX', now, id)
  end
  lead_or_follow(id)
  return true
end

-- Look at some requests: repair ours, and return foreign ones, as many as fit into one answer.
function commands.survey()
  local mended, foreign_requests, space = 0, {}, given.space
  for _, id in ipairs(given.ids) do
    if is_known(id) then
      local was_mended, was_recovered = mend(id), recover(id)
      if was_mended or was_recovered then
        mended = mended + 1
        changed()
      end
    elseif space > 0 then
      local found = foreign_request(id)
      foreign_requests[#foreign_requests + 1] = found
      space = space - (found and #found[2] or 0)
    end
  end
  return {mended = mended, full = space <= 0}, foreign_requests
end
