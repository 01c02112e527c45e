-- tests/slurm/hook_test.lua PATH: the hook in a plain Lua, with Slurm's own functions made up.
local logged = {}
slurm = {
    SUCCESS = 0,
    ERROR = -1,
    log_user = function(format, ...)
        logged[#logged + 1] = string.format(format, ...)
    end,
    log_error = function(format, ...)
        logged[#logged + 1] = "error " .. string.format(format, ...)
    end,
}
HEADROOM_AS_MODULE = true
local source = assert(io.open(arg[1])):read("*a")
local path = os.tmpname()
local function load_hook(change)
    local text = source:gsub('local QUOTA_FILE = "[^"]*"', 'local QUOTA_FILE = "' .. path .. '"')
    return assert(load(change and change(text) or text))()
end
local hook = load_hook()
local tests = 0

local function is(found, wanted, what)
    tests = tests + 1
    if found ~= wanted then
        error(string.format("%s: %s, not %s", what, tostring(found), tostring(wanted)), 2)
    end
end

-- 1. GPUs in every way of asking, as 22.05 and as later releases write them.
local NONE = 4294967294
for _, case in ipairs({
    { { tres_per_node = "gres:gpu:a100:2", min_nodes = 3 }, 6, "a100" },
    { { tres_per_node = "gres/gpu:a100=2", min_nodes = NONE }, 2, "a100" },
    { { tres_per_node = "gres:gpu:a100:2", min_nodes = NONE, num_tasks = 28, ntasks_per_node = 4 }, 14, "a100" },
    { { tres_per_node = "gres:gpu:a100:2", min_nodes = 3, num_tasks = 3, ntasks_per_node = 65534 }, 6, "a100" },
    { { tres_per_node = "gres/gpu:2" }, 2, nil },
    { { tres_per_node = "gpu:h100" }, 1, "h100" },
    { { tres_per_node = "gres/gpu" }, 1, nil },
    { { gres = "gpu:a100:4" }, 4, "a100" },
    { { tres_per_job = "gres:gpu:h100:8", tres_per_node = nil, min_nodes = 2 }, 8, "h100" },
    { { tres_per_task = "gres/gpu:a100=1", num_tasks = 5 }, 5, "a100" },
    { { tres_per_node = "gres:craynetwork:1,gres:gpu:a100:2" }, 2, "a100" },
    { { tres_per_socket = "gres:gpu:a100:1", sockets_per_node = 2, min_nodes = 2 }, 4, "a100" },
    { { tres_per_socket = "gres:gpu:a100:1", sockets_per_node = 65534, min_nodes = 2 }, 2, "a100" },
    { { tres_per_node = "gres:shard:4" }, 0, nil },
    { { num_tasks = 5, ntasks_per_tres = 2 }, 3, nil },
    { { num_tasks = 5, ntasks_per_tres = 65534 }, 0, nil },
    { {}, 0, nil },
}) do
    local all = hook.asked(case[1])
    is(#all, case[2] > 0 and 1 or 0, "types of case " .. _)
    is((all[1] or {}).gpus, case[2] > 0 and case[2] or nil, "GPUs of case " .. _)
    is((all[1] or {}).type, case[2] > 0 and (case[3] or "*") or nil, "type of case " .. _)
end
for expression, count in pairs({ ["0-9"] = 10, ["0-9%2"] = 2, ["1,3,5-7"] = 5, ["0-8:4"] = 3, [""] = 1 }) do
    is(hook.array_tasks({ array_inx = expression }), count, "tasks of " .. expression)
end

-- 2. Answers.
local function write(text)
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
end
local head = "headroom-quota 1\nexpires 9999999999\nby qos\nrequire_type 1\n"
local limits = "limit spot1h 1 * 8 0\nlimit spot1h 1 a100 8 2\nlimit spot4h 4 a100 4 4\n"
local function submit(job, with)
    logged = {}
    return (with or hook).submit(job), table.concat(logged, "\n")
end
local function job(qos, gpus)
    return { qos = qos, tres_per_node = "gres:gpu:" .. gpus }
end
write(head .. limits)
local result, text = submit(job("spot1h", "a100:2"))
is(result, 0, "free")
is(text, "headroom: 2 a100 guaranteed for 1 h from their start; 6 were free", "free")
result, text = submit(job("spot4h", "a100:2"))
is(result, 0, "spent")
is(text, "headroom: 4 h guaranteed is spent: 0 of 4 a100 are free, this job asks for 2; it waits; 1 h is free now for 6 GPUs (--qos=spot1h)", "spent")
result, text = submit(job("spot4h", "a100:6"))
is(text:match("it waits until that limit grows") ~= nil, true, "never fits")
result, text = submit(job("spot1h", "2"))
is(result, -1, "no type")
is(select(2, submit(job("normal", "2"))), "", "HP")
is(select(2, submit({ qos = "normal" })), "", "no GPUs")
is(select(2, submit({})), "", "nothing")
result, text = submit({ qos = "spot1h", tres_per_node = "gres:gpu:a100:1", array_inx = "0-9%7" })
is(text, "headroom: 1 h guaranteed: 6 a100 were free, and each task of this array asks for 1; its tasks start as they fit", "an array under its limit")
is(select(2, submit({ qos = "spot1h", tres_per_node = "gres:gpu:a100:1", array_inx = "0-5" })), "headroom: 6 a100 guaranteed for 1 h from their start; 6 were free", "an array that fits")
result, text = submit({ qos = "spot4h", tres_per_node = "gres:gpu:a100:2", array_inx = "0-9" })
is(text, "headroom: 4 h guaranteed is spent: 0 of 4 a100 are free, each task of this array asks for 2; its tasks start as they fit; 1 h is free now for 6 GPUs (--qos=spot1h)", "a task of an array that does not fit")
is(select(2, submit(job("spot1h", "a100:7"))), "headroom: 1 h guaranteed: 6 of 8 a100 are free, and this job asks for 7; it waits", "free, and too few")

-- Each of several types, and the QOS and account that a job gets without a word.
write(head .. limits .. "limit spot1h 1 h100 4 0\n")
result, text = submit(job("spot1h", "a100:1,gres:gpu:h100:2"))
is(text, "headroom: 1 a100 guaranteed for 1 h from their start; 6 were free; 2 h100 guaranteed for 1 h from their start; 4 were free", "two types")
-- A type that the file does not have is none that Slurm starts; a file of all GPUs alone says nothing of types.
write(head .. limits)
result, text = submit(job("spot1h", "v100:1"))
is(result, 0, "an unknown type")
is(text, "", "an unknown type")
is(select(2, submit(job("spot1h", "A100:1"))), "", "a type in other letters")
write(head .. "limit spot1h 1 * 8 0\n")
is(select(2, submit(job("spot1h", "a100:1"))), "headroom: 1 GPUs guaranteed for 1 h from their start; 8 were free", "no types in the file")
write(head .. limits)
is(select(2, submit({ default_qos = "spot1h", tres_per_node = "gres:gpu:a100:1" })):match("6 were free") ~= nil, true, "default QOS")
is(select(2, submit({ qos = "normal", default_qos = "spot1h", tres_per_node = "gres:gpu:a100:1" })), "", "HP with a spot default")
write((head .. limits):gsub("by qos", "by account"))
is(select(2, submit({ default_account = "spot1h", tres_per_node = "gres:gpu:a100:1" })):match("6 were free") ~= nil, true, "default account")

-- Several QOS of a job, in any order and in capitals: that of the longest promise that is free; one that is no spot QOS makes it HP.
write(head .. limits)
for qos, gpus in pairs({ ["spot1h,spot4h"] = 2, ["spot4h,spot1h"] = 2, ["SPOT1H"] = 2, ["Spot4h,spot1H"] = 3 }) do
    result, text = submit(job(qos, "a100:" .. gpus))
    is(text, string.format("headroom: %d a100 guaranteed for 1 h from their start; 6 were free", gpus), qos)
    is(submit(job(qos, "2")), -1, "no type, " .. qos)
end
is(select(2, submit(job("spot1h,spot4h", "a100:7"))):match("4 h guaranteed is spent") ~= nil, true, "none is free")
is(select(2, submit(job("spot1h,normal", "a100:2"))), "", "HP by one of its QOS")
write((head .. limits):gsub("4 4\n", "9 4\n"))
is(select(2, submit(job("spot1h,spot4h", "a100:2"))), "headroom: 2 a100 guaranteed for 4 h from their start; 5 were free", "the longest")
write((head .. limits):gsub("9999999999", "1000"))
is(submit(job("spot1h,spot4h", "a100:2")), -1, "stale, several QOS")
write((head .. limits):gsub("by qos", "by account"))

-- When it is expected: the first time at which there is enough, and nothing where none is known.
local soon, later = os.time() + 3600, os.time() + 7200
write(head .. limits .. string.format("expected spot4h a100 %d 2\nexpected spot4h a100 %d 4\n", soon, later))
local function about(time)
    return "; expected for 4 h about " .. os.date(os.date("%F", time) == os.date("%F") and "%H:%M" or "%a %H:%M", time)
end
for gpus, expected in pairs({ [2] = about(soon), [3] = about(later), [5] = "" }) do
    result, text = submit(job("spot4h", "a100:" .. gpus))
    is(result, 0, "expected")
    is(text:match("; expected.*$") or "", expected, "expected for " .. gpus)
end
is(select(2, submit(job("spot1h", "a100:2"))):match("expected"), nil, "free now")
write(head .. limits .. "expected spot4h a100 1000 4\n")
is(select(2, submit(job("spot4h", "a100:2"))):match("expected"), nil, "a time that is over")

-- Files that are not whole, not ours, or huge, and numbers that are none: the job passes, and the log has the reason.
for what, content in pairs({
    ["an end that is missing"] = (head .. limits):sub(1, -4),
    ["too long"] = head .. limits:rep(100000),
    ["no number"] = head .. "limit spot1h 1 a100 1e308 0\n",
    ["half an hour"] = head .. "limit spot1h 0.5 a100 8 0\n",
    ["a negative one"] = head .. "limit spot1h 1 a100 8 -1\n",
    ["another version"] = "headroom-quota 2\n",
    ["nothing"] = "",
}) do
    write(content)
    result, text = submit(job("spot1h", "a100:2"))
    is(result, 0, what)
    is(text:match("^error headroom: ") ~= nil, true, what .. " is logged")
end

-- 3. Stale, missing, torn, and an error of the hook's own.
write((head .. limits):gsub("9999999999", "1000"))
is(submit(job("spot1h", "a100:2")), -1, "stale")
is(submit(job("normal", "a100:2")), 0, "stale, HP")
local lenient = load_hook(function(source_text)
    return (source_text:gsub("local REFUSE_STALE = true", "local REFUSE_STALE = false"))
end)
is(submit(job("spot1h", "a100:2"), lenient), 0, "stale, where the site lets them wait")
os.remove(path)
result, text = submit(job("spot1h", "a100:2"))
is(result, 0, "missing")
is(text:match("^error headroom: ") ~= nil, true, "missing is logged")
local strict = load_hook(function(source_text)
    return (source_text:gsub("local STRICT = false", "local STRICT = true"))
end)
is(submit(job("spot1h", "a100:2"), strict), -1, "missing, where the site is strict")
math.randomseed(29)
for _ = 1, 2000 do
    local bytes = (head .. limits):gsub(".", function(letter)
        return math.random() < 0.02 and string.char(math.random(0, 255)) or letter
    end)
    write(bytes:sub(1, math.random(0, #bytes)))
    local ran, value = pcall(submit, job("spot1h", "a100:2"))
    is(ran, true, "torn bytes: " .. tostring(value))
    is(value == 0 or value == -1, true, "an answer")
end
os.remove(path)
print(tests .. " checks of the hook")
