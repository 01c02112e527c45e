--[[
job_submit.lua: tells users at submission what spot quota is free, from the file that headroom-slurm writes.

Copy it beside slurm.conf, set JobSubmitPlugins=lua, and restart slurmctld. Where a job_submit.lua is there already, copy this file as
/etc/slurm/headroom.lua, write at the head of yours

    HEADROOM_AS_MODULE = true
    local headroom = dofile("/etc/slurm/headroom.lua")

and in its slurm_job_submit, before it returns slurm.SUCCESS

    if headroom.submit(job_desc) ~= slurm.SUCCESS then return slurm.ERROR end

It reads one small file and asks nobody: it never waits. A fault of its own (a file that is missing or torn, an error in here)
lets the job pass and is logged, unless STRICT. HP jobs always pass.
]]

-- Where headroom-slurm writes (setting quota_file).
local QUOTA_FILE = "/var/lib/headroom-slurm/quota"
-- Refuse spot jobs while the quota is older than its time: nobody renews limits then.
local REFUSE_STALE = true
-- Refuse spot jobs also where this hook has a fault of its own.
local STRICT = false

local PREFIX = "headroom: "
-- A longer quota file is none of ours: slurmctld would wait while it is read.
local MOST_BYTES = 1000000

-- A whole number of at most 15 digits, which every Lua keeps and prints as it stands.
local function whole(word)
    return word and #word <= 15 and word:match("^%d+$") and tonumber(word) or nil
end

-- Reads the file into {expires, by, require_type, limits = {{name, hours, type, limit, held}, ...},
-- expected = {{name, type, at, gpus}, ...}}; nil and why, where it cannot.
local function read_quota(path)
    local file, why = io.open(path, "r")
    if not file then
        return nil, why
    end
    local content, fault = file:read(MOST_BYTES + 1)
    file:close()
    if fault then
        return nil, path .. ": " .. fault
    end
    if not content or #content > MOST_BYTES or not content:match("^headroom%-quota 1\n") then
        return nil, path .. ": not a quota file of version 1"
    end
    if content:sub(-1) ~= "\n" then
        return nil, path .. ": its end is missing"
    end
    local quota = { limits = {}, expected = {} }
    for line in content:gmatch("[^\n]+") do
        local words = {}
        for word in line:gmatch("%S+") do
            words[#words + 1] = word
        end
        if words[1] == "expires" then
            quota.expires = whole(words[2])
        elseif words[1] == "by" then
            quota.by = words[2]
        elseif words[1] == "require_type" then
            quota.require_type = words[2] == "1"
        elseif words[1] == "limit" then
            local limit = {
                name = words[2],
                hours = whole(words[3]),
                type = words[4],
                limit = whole(words[5]),
                held = whole(words[6]),
            }
            if not (limit.hours and limit.limit and limit.held) then
                return nil, path .. ": a torn line: " .. line
            end
            quota.limits[#quota.limits + 1] = limit
        elseif words[1] == "expected" then
            local one = { name = words[2], type = words[3], at = whole(words[4]), gpus = whole(words[5]) }
            if not (one.at and one.gpus) then
                return nil, path .. ": a torn line: " .. line
            end
            quota.expected[#quota.expected + 1] = one
        end
    end
    if not quota.expires or not quota.by then
        return nil, path .. ": no time at which it expires"
    end
    return quota
end

local function number_of(value)
    local number = tonumber(value)
    -- Slurm's own words for "not set", of 16, 32 and 64 bits.
    if not number or number <= 0 or number == 65534 or number == 65535 or number >= 4294967294 then
        return nil
    end
    return number
end

-- GPUs of one text such as gres:gpu:a100:2, gres/gpu:a100=2, or gpu:2: counts by type ("*" for those without one), and the types in
-- their order.
local function gpus_of(text)
    local counts, types = {}, {}
    for part in (text or ""):gmatch("[^,]+") do
        local rest = part:match("^gres[:/]gpu(.*)$") or part:match("^gpu(.*)$")
        if rest then
            local named, number = rest:match("^:([^:=]+)[:=](%d+)$")
            if not named then
                number = rest:match("^[:=](%d+)$")
                named = not number and rest:match("^:(.+)$") or nil
            end
            local type = named or "*"
            if not counts[type] then
                counts[type] = 0
                types[#types + 1] = type
            end
            counts[type] = counts[type] + (tonumber(number) or (rest == "" or named) and 1 or 0)
        end
    end
    return counts, types
end

-- GPUs that a job asks for, in all, by type: those of each node, task or socket, times as many as there are at least.
local function asked(job)
    local nodes = number_of(job.min_nodes) or 1
    local tasks = number_of(job.num_tasks) or nodes
    -- Tasks of each node say how many nodes there are at least.
    local per_node = number_of(job.ntasks_per_node)
    if per_node then
        nodes = math.max(nodes, math.ceil(tasks / per_node))
    end
    local parts = {
        { job.tres_per_job, 1 },
        { job.tres_per_node or job.gres, nodes },
        { job.tres_per_task, tasks },
        { job.tres_per_socket, nodes * (number_of(job.sockets_per_node) or 1) },
    }
    for _, part in ipairs(parts) do
        local counts, types = gpus_of(part[1])
        local all = {}
        for _, type in ipairs(types) do
            if counts[type] > 0 then
                all[#all + 1] = { type = type, gpus = counts[type] * part[2] }
            end
        end
        if #all > 0 then
            return all
        end
    end
    -- --ntasks-per-gpu alone asks for GPUs of any type.
    local by_gpu = number_of(job.ntasks_per_tres)
    return by_gpu and { { type = "*", gpus = math.ceil(tasks / by_gpu) } } or {}
end

local function array_tasks(job)
    local expression = job.array_inx
    if not expression or expression == "" then
        return 1
    end
    local limit = tonumber(expression:match("%%(%d+)$"))
    local count = 0
    for part in expression:gsub("%%%d+$", ""):gmatch("[^,]+") do
        local first, last, step = part:match("^(%d+)%-(%d+):?(%d*)$")
        if first then
            count = count + math.floor((tonumber(last) - tonumber(first)) / (tonumber(step) or 1)) + 1
        else
            count = count + 1
        end
    end
    return limit and math.min(limit, count) or count
end

local function free_of(limit)
    return math.max(0, limit.limit - limit.held)
end

local function hours_text(hours)
    return string.format("%d h", hours)
end

-- What else is free, longest promise first: "1 h is free now for 8 a100 (--qos=spot1h)".
local function others(quota, type, gpus, but)
    local flag = quota.by == "qos" and "--qos=" or "--account="
    local texts = {}
    for index = #quota.limits, 1, -1 do
        local limit = quota.limits[index]
        if limit.name ~= but and limit.type == type and free_of(limit) >= gpus then
            texts[#texts + 1] =
                string.format("%s is free now for %d GPUs (%s%s)", hours_text(limit.hours), free_of(limit), flag, limit.name)
        end
    end
    return table.concat(texts, "; ")
end

-- When so many GPUs are expected to be free, by the forecast: "expected for 4 h about 14:30"; empty where it is not known.
local function expected_text(quota, limit, gpus, now)
    for _, one in ipairs(quota.expected) do
        if one.name == limit.name and one.type == limit.type and one.gpus >= gpus and one.at > now then
            local format = os.date("%F", one.at) == os.date("%F", now) and "%H:%M" or "%a %H:%M"
            return string.format("; expected for %s about %s", hours_text(limit.hours), os.date(format, one.at))
        end
    end
    return ""
end

local headroom = {}

-- The message for GPUs of one type under a limit. Tasks of an array start one by one as they fit, so one of them decides.
local function answer_of(quota, limit, gpus, tasks, now)
    local free, promise = free_of(limit), hours_text(limit.hours)
    local kind = limit.type == "*" and "GPUs" or limit.type
    local asks = tasks > 1 and "each task of this array asks for " or "this job asks for "
    if free >= gpus * tasks then
        return string.format("%d %s guaranteed for %s from their start; %d were free", gpus * tasks, kind, promise, free)
    end
    if free >= gpus then
        return string.format("%s guaranteed: %d %s were free, and %s%d; its tasks start as they fit", promise, free, kind, asks, gpus)
    end
    local text
    if free == 0 then
        text = string.format("%s guaranteed is spent: 0 of %d %s are free, %s%d", promise, limit.limit, kind, asks, gpus)
    else
        text = string.format("%s guaranteed: %d of %d %s are free, and %s%d", promise, free, limit.limit, kind, asks, gpus)
    end
    local instead = others(quota, limit.type, gpus, limit.name)
    if gpus > limit.limit then
        text = text .. "; it waits until that limit grows"
    else
        text = text .. (tasks > 1 and "; its tasks start as they fit" or "; it waits")
    end
    text = instead ~= "" and (text .. "; " .. instead) or text
    return text .. expected_text(quota, limit, gpus, now)
end

-- The QOS or accounts of a job that decide: those which it names, or that which it gets without a word. From 24.11 on a job may name
-- several QOS.
local function names_of(job, by)
    local named, default = job.account, job.default_account
    if by == "qos" then
        named, default = job.qos, job.default_qos
    end
    local names = {}
    for name in ((named ~= "" and named or default) or ""):gmatch("[^,]+") do
        names[#names + 1] = name
    end
    return names
end

-- Limits of one name by type; Slurm takes a name in capitals, too.
local function limits_of(quota, name)
    local found = {}
    for _, limit in ipairs(quota.limits) do
        if limit.name:lower() == name:lower() then
            found[limit.type] = limit
        end
    end
    return next(found) ~= nil and found or nil
end

-- Limits of the names of a job, the longest promise first: Slurm tries QOS by their priority. Nil where one has none: it is no spot job, or
-- one without a promise.
local function spot_limits(job, quota)
    local all = {}
    for _, name in ipairs(names_of(job, quota.by)) do
        local found = limits_of(quota, name)
        if not found then
            return nil
        end
        all[#all + 1] = found
    end
    table.sort(all, function(one, other)
        return select(2, next(one)).hours > select(2, next(other)).hours
    end)
    return all[1] and all
end

-- Whether the file has a type, or none at all. Slurm refuses a type that no node has, and one in other letters, so nothing is promised of it.
local function knows(quota, type)
    local has_types = false
    for _, limit in ipairs(quota.limits) do
        if limit.type == type then
            return true
        end
        has_types = has_types or limit.type ~= "*"
    end
    return type == "*" or not has_types
end

-- The first limit of a type that is free for so many GPUs, or else the first of all.
local function limit_of(all, type, gpus)
    local first
    for _, of_name in ipairs(all) do
        local limit = of_name[type] or of_name["*"]
        if limit and free_of(limit) >= gpus then
            return limit
        end
        first = first or limit
    end
    return first
end

-- The message for a job, and whether it is refused: text or nil, and true or false.
function headroom.answer(job, quota, now)
    local all = spot_limits(job, quota)
    if not all then
        return nil, false
    end
    local wanted = asked(job)
    if #wanted == 0 then
        return nil, false
    end
    if now > quota.expires then
        local age = math.floor((now - quota.expires) / 60)
        return string.format(
            "the spot quota has not been renewed for %d min longer than it is good for: spot jobs %s",
            age,
            REFUSE_STALE and "are refused until it is; try again later, or submit without " .. table.concat(names_of(job, quota.by), ",") or "may wait"
        ), REFUSE_STALE
    end
    local tasks, texts = array_tasks(job), {}
    for _, one in ipairs(wanted) do
        if one.type == "*" and quota.require_type then
            local types = {}
            for known in pairs(all[1]) do
                if known ~= "*" then
                    types[#types + 1] = known
                end
            end
            table.sort(types)
            return string.format(
                "a spot job has to name its GPU type: --gres=gpu:TYPE:%d with TYPE one of %s", one.gpus, table.concat(types, ", ")
            ), true
        end
        local limit = knows(quota, one.type) and limit_of(all, one.type, one.gpus)
        if limit then
            texts[#texts + 1] = answer_of(quota, limit, one.gpus, tasks, now)
        end
    end
    if #texts == 0 then
        return nil, false
    end
    return table.concat(texts, "; "), false
end

local function log_fault(why)
    slurm.log_error("%s%s", PREFIX, tostring(why))
end

-- slurm.SUCCESS, or slurm.ERROR for a job that is refused.
function headroom.submit(job)
    local ran, quota, why = pcall(read_quota, QUOTA_FILE)
    if ran and not quota then
        ran, quota = false, why
    end
    local text, refuse
    if ran then
        ran, text, refuse = pcall(headroom.answer, job, quota, os.time())
        quota = not ran and text or quota
    end
    if not ran then
        log_fault(quota)
        if STRICT and job.qos then
            slurm.log_user("%sthe quota of spot jobs cannot be read: tell your administrator", PREFIX)
            return slurm.ERROR
        end
        return slurm.SUCCESS
    end
    if text then
        slurm.log_user("%s%s", PREFIX, text)
    end
    return refuse and slurm.ERROR or slurm.SUCCESS
end

function slurm_job_submit(job_desc, part_list, submit_uid)
    return headroom.submit(job_desc)
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
    return slurm.SUCCESS
end

headroom.read_quota = read_quota
headroom.asked = asked
headroom.array_tasks = array_tasks
-- For a job_submit.lua that loads this file; slurmctld itself wants slurm.SUCCESS of the one beside slurm.conf.
if HEADROOM_AS_MODULE then
    return headroom
end
return slurm.SUCCESS
