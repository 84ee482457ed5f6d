-- Prepared selects of one row by its key, for sysbench; who runs it: ../sysbench.py.
-- Each thread draws among its own part of the keys: all of them together draw among all.

sysbench.cmdline.options = {
    keys_file = {"File of keys, each with a newline behind it, all of the same length", ""},
    keys_count = {"How many there are", 0},
    key_length = {"Bytes of a key", 0},
    statement = {"What is prepared, with one ?", ""},
}

local keys, statement, parameter = {}, nil, nil

function thread_init()
    local options = sysbench.opt
    local first = math.floor(sysbench.tid * options.keys_count / options.threads)
    local behind = math.floor((sysbench.tid + 1) * options.keys_count / options.threads)
    -- More threads than keys: some have the same one.
    behind = math.max(behind, first + 1)
    local file = assert(io.open(options.keys_file, "rb"))
    file:seek("set", first * (options.key_length + 1))
    for _ = first, behind - 1 do
        keys[#keys + 1] = assert(file:read("*l"))
    end
    file:close()

    local connection = sysbench.sql.driver():connect()
    statement = connection:prepare(options.statement)
    parameter = statement:bind_create(sysbench.sql.type.CHAR, options.key_length)
    statement:bind_param(parameter)
end

function event()
    local key = keys[sysbench.rand.uniform(1, #keys)]
    parameter:set(key)
    local found = statement:execute()
    -- Values of a prepared statement are not shown to a script: how many rows came is all that can be looked at.
    if found.nrows ~= 1 then
        error(string.format("%d rows of the key %s", tonumber(found.nrows), key))
    end
    found:free()
end
