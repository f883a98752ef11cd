-- Shared by all commands. `given` are the arguments of the command. A request is one hash; its fields `crib_…` are ours, because foreign
-- clients write `status` and `yaml` whenever they like. All other keys begin with `given.base`:
--   count       how many requests were ever filed        changes         how often anything changed
--   numbers     the last number of each day              answer:<token>  the outcome of a command, for a retry
--   by:<status> the requests of that status, by age      open:<name>     the open requests for a tool, by age
--   pending     what is to be built, the next one first  leases          what is being built, by the end of the lease
--   leaders     the request that is built for a digest  followers:<id>  requests that end as that one does, by age
--   history:<id>  what happened to it                    experiments     everything that ever waited, by age
--   waiting:<digest>  requests and the experiments that named them, until the digest is fulfilled
--   wanted:<experiment>  the requests that it waits for  named:<experiment>  the requests that ever named it, by age
--   released    when each experiment went on             allowances      what the operator adds to a request
--   epoch       changes when the server lost its keys
-- What the operator adds is not in the hash: a client that may only write requests must not allow anything.

local RANKS = {high = 0, medium = 1, low = 2}
local STATUSES = {'pending', 'building', 'ready', 'failed', 'cancelled'}
local OPEN = {pending = true, building = true}
local FINAL = {ready = true, failed = true, cancelled = true}
local FIELDS = {
  'crib_name', 'crib_status', 'crib_priority', 'crib_text', 'created_at', 'updated_at', 'crib_experiment', 'error', 'tool',
  'crib_leader', 'crib_owner', 'crib_held', 'crib_attempts', 'crib_requesters',
}
local RANK_STEP = 2 ^ 40 -- more than there will ever be requests

local given = cjson.decode(ARGV[1])
local commands = {}

local clock = redis.call('TIME')
local seconds = tonumber(clock[1])
local now = seconds * 1000 + math.floor(tonumber(clock[2]) / 1000)

local function day_of(days)
  -- Counted from a first of March, leap days come last and need no case of their own.
  local shifted = days + 719468
  local era = math.floor(shifted / 146097)
  local day_of_era = shifted - era * 146097
  local year_of_era = math.floor(
    (day_of_era - math.floor(day_of_era / 1460) + math.floor(day_of_era / 36524) - math.floor(day_of_era / 146096)) / 365
  )
  local day_of_year = day_of_era - (365 * year_of_era + math.floor(year_of_era / 4) - math.floor(year_of_era / 100))
  local month_from_march = math.floor((5 * day_of_year + 2) / 153)
  local day = day_of_year - math.floor((153 * month_from_march + 2) / 5) + 1
  local month = month_from_march < 10 and month_from_march + 3 or month_from_march - 9
  local year = year_of_era + era * 400 + (month <= 2 and 1 or 0)
  return year, month, day
end

local year, month, day = day_of(math.floor(seconds / 86400))
local today = given.today or string.format('%04d%02d%02d', year, month, day)
local second_of_day = seconds % 86400
local stamp = given.stamp or string.format(
  '%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month, day,
  math.floor(second_of_day / 3600), math.floor(second_of_day % 3600 / 60), second_of_day % 60, now % 1000
)

local function own(name)
  return given.base .. name
end

local function key(id)
  return given.prefix .. ':' .. id
end

-- A field of the hash; empty if the key holds another type.
local function get(id, field)
  local found = redis.pcall('HGET', key(id), field)
  return type(found) == 'string' and found or ''
end

local function put(id, ...)
  redis.call('HSET', key(id), ...)
end

local function is_whole(id)
  for _, field in ipairs({'crib_age', 'crib_fence', 'crib_attempts', 'crib_requesters'}) do
    local count = get(id, field)
    if #count > 15 or not string.match(count, '^%-?%d+$') then return false end
  end
  return RANKS[get(id, 'crib_priority')] ~= nil
end

-- The status of a request; empty if the hash is not ours, or is damaged.
local function status_of(id)
  local status = get(id, 'crib_status')
  for _, one in ipairs(STATUSES) do
    if status == one then return is_whole(id) and status or '' end
  end
  return ''
end

local function is_known(id)
  return status_of(id) ~= ''
end

-- What the operator added to this very text, and to no other that came under the id.
local function allowance_of(id)
  local kept = redis.call('HGET', own('allowances'), id)
  if not kept or string.sub(kept, 1, 40) ~= redis.sha1hex(get(id, 'crib_text')) then return '' end
  return string.sub(kept, 41)
end

local function set_allowance(id, allowance)
  redis.call('HSET', own('allowances'), id, redis.sha1hex(get(id, 'crib_text')) .. allowance)
end

local function record(id)
  local row = {id}
  for position, field in ipairs(FIELDS) do row[position + 1] = get(id, field) end
  row[#row + 1] = allowance_of(id)
  return row
end

local function without_last_newlines(text)
  local last = #text
  while last > 0 do
    local byte = string.byte(text, last)
    if byte ~= 10 and byte ~= 13 then break end
    last = last - 1
  end
  return string.sub(text, 1, last)
end

local function same_text(one, other)
  return without_last_newlines(one) == without_last_newlines(other)
end

local function changed()
  redis.call('PUBLISH', own('changed'), redis.call('INCR', own('changes')))
end

local function note(id, step, text)
  local number = redis.call('HINCRBY', key(id), 'crib_events', 1)
  redis.call('RPUSH', own('history:') .. id, cjson.encode({number, stamp, step, text or ''}))
  redis.call('LTRIM', own('history:') .. id, -given.events, -1)
end

-- The request that is built in place of this one, or itself. The hash of a request may be deleted at any time, and a later
-- request under its id may ask for something else.
local function leader_of(id)
  local leader = get(id, 'crib_leader')
  return leader ~= '' and is_known(leader) and get(leader, 'crib_digest') == get(id, 'crib_digest') and leader or id
end

-- All that follow, also those that are over by themselves.
local function followers(id)
  local members = {}
  for _, member in ipairs(redis.call('ZRANGE', own('followers:') .. id, 0, -1)) do
    if is_known(member) and leader_of(member) == id then members[#members + 1] = member end
  end
  return members
end

-- A request, and those that follow it and are of that kind.
local function with_followers(id, kinds)
  local members = {id}
  for _, member in ipairs(followers(id)) do
    if kinds[status_of(member)] then members[#members + 1] = member end
  end
  return members
end

local function set_leader(id, leader)
  local before, age = get(id, 'crib_leader'), tonumber(get(id, 'crib_age'))
  if before ~= '' then redis.call('ZREM', own('followers:') .. before, id) end
  if leader ~= '' then redis.call('ZADD', own('followers:') .. leader, age, id) end
  put(id, 'crib_leader', leader)
end

local function open_for(digest)
  local leader = redis.call('HGET', own('leaders'), digest)
  return leader and OPEN[status_of(leader)] and get(leader, 'crib_digest') == digest and leader or nil
end

-- What comes first is built first.
local function place_in_order(id)
  return RANKS[get(id, 'crib_priority')] * RANK_STEP + tonumber(get(id, 'crib_age'))
end

-- Update every index from the hash of the request.
local function index(id)
  local status, age = get(id, 'crib_status'), tonumber(get(id, 'crib_age'))
  for _, other in ipairs(STATUSES) do
    if other ~= status then redis.call('ZREM', own('by:') .. other, id) end
  end
  redis.call('ZADD', own('by:') .. status, age, id)
  local open = own('open:') .. get(id, 'crib_name')
  if OPEN[status] then redis.call('ZADD', open, age, id) else redis.call('ZREM', open, id) end
  if status == 'pending' and get(id, 'crib_leader') == '' then
    redis.call('ZADD', own('pending'), place_in_order(id), id)
  else
    redis.call('ZREM', own('pending'), id)
  end
  if status ~= 'building' or get(id, 'crib_held') == '1' then redis.call('ZREM', own('leases'), id) end
end

local function turn(id, status)
  put(id, 'status', status, 'crib_status', status, 'updated_at', stamp)
  index(id)
end

local function turn_all(id, status)
  for _, member in ipairs(with_followers(id, OPEN)) do turn(member, status) end
end

-- Record in the history that another text was refused, once for each text; true if it is new.
local function refuse_text(id, digest)
  if get(id, 'crib_refused') == digest then return false end
  put(id, 'crib_refused', digest)
  note(id, 'refused', given.another_text)
  return true
end

-- The text that a foreign client wrote over ours, or nil; a text that is far too long is not read.
local function other_yaml(id)
  local text, length = get(id, 'crib_text'), redis.call('HSTRLEN', key(id), 'yaml')
  if length > #text + given.newlines then return 'of ' .. length .. ' bytes' end
  local yaml = get(id, 'yaml')
  if yaml == text then return nil end
  return yaml
end

-- Restore what a foreign client has overwritten; true if it had.
local function mend(id)
  local status, other = get(id, 'crib_status'), other_yaml(id)
  if get(id, 'status') == status and not other then return false end
  if other and not same_text(other, get(id, 'crib_text')) then refuse_text(id, redis.sha1hex(other)) end
  put(id, 'status', status, 'yaml', get(id, 'crib_text'))
  return true
end

local function count_changes()
  return tonumber(redis.call('GET', own('changes')) or 0)
end

-- A server that lost its keys, or the latest changes of them, starts another epoch; only commands that change something start one.
local function current_epoch()
  local epoch = redis.call('GET', own('epoch'))
  local has_lost = not epoch or given.epoch == epoch and count_changes() < given.known
  if has_lost and given.token then
    epoch = redis.sha1hex(given.token .. now)
    redis.call('SET', own('epoch'), epoch)
  end
  return epoch or ''
end

-- Of the requests that the client takes for open, those that are over or were deleted.
local function not_open()
  local ids = {}
  for _, id in ipairs(given.remembered) do
    if redis.call('EXISTS', key(id)) == 0 or FINAL[get(id, 'crib_status')] then ids[#ids + 1] = id end
  end
  return ids
end

local function answer()
  local changes, epoch = count_changes(), current_epoch()
  -- A client that knows another epoch restores its open requests first: a new one must not take their numbers.
  if given.token and given.epoch ~= '' and given.epoch ~= epoch then return {'{}', {}, changes, changes, epoch, {}} end
  local token = given.token and own('answer:') .. given.token
  local spelled, rows = token and redis.call('GET', token), nil
  if not spelled then
    local outcome
    outcome, rows = commands[given.command]()
    spelled = cjson.encode(outcome)
    if token then redis.call('SET', token, spelled, 'EX', given.memory) end
  end
  local id = cjson.decode(spelled).id
  rows = rows or id and is_known(id) and {record(id)} or {}
  return {spelled, rows, changes, count_changes(), epoch, not_open()}
end
