<?php
// PHP's extension memcached, that is libmemcached, with its serializer and compression: text or binary.
// What should come is in ../../features.toml.

$calls = $argv[1] === '--calls';
[$host, $port, $protocol, $prefix] = $calls ? ['', 0, $argv[2], ''] : array_slice($argv, 1);
$timeout = $calls ? (float) $argv[3] : 5.0;

class Cannot extends Exception {}

function tell(array $line): void
{
    echo json_encode($line, JSON_UNESCAPED_SLASHES | JSON_PARTIAL_OUTPUT_ON_ERROR), "\n";
}

$extension = phpversion('memcached');
tell(['client' => 'PHP memcached', 'version' => $extension, 'runtime' => 'PHP ' . PHP_VERSION]);

// Credentials need the binary protocol.
function connected(string $host, int $port, string $protocol, float $timeout, array $options = []): Memcached
{
    foreach (array_diff(array_keys($options), $protocol === 'binary' ? ['credentials'] : []) as $option) {
        throw new Cannot("no option $option");
    }
    $m = new Memcached();
    $m->setOption(Memcached::OPT_BINARY_PROTOCOL, $protocol === 'binary');
    if (isset($options['credentials'])) {
        $m->setSaslAuthData(...$options['credentials']);
    }
    $m->setOption(Memcached::OPT_TCP_NODELAY, true);
    $m->setOption(Memcached::OPT_RECV_TIMEOUT, (int) ($timeout * 1000000));
    $m->setOption(Memcached::OPT_POLL_TIMEOUT, (int) ($timeout * 1000));
    $m->setOption(Memcached::OPT_RETRY_TIMEOUT, 1);
    $m->addServer($host, $port);
    return $m;
}

// A miss is false and has a result code of its own; anything else that failed is an error.
function got(Memcached $m, mixed $value): mixed
{
    $code = $m->getResultCode();
    if ($code === Memcached::RES_SUCCESS) {
        return $value;
    }
    if ($code === Memcached::RES_NOTFOUND) {
        return null;
    }
    throw new RuntimeException("$code " . $m->getResultMessage());
}

function done(Memcached $m, bool $answer): bool
{
    $refusals = [Memcached::RES_NOTSTORED, Memcached::RES_NOTFOUND, Memcached::RES_DATA_EXISTS];
    if (!$answer && !in_array($m->getResultCode(), $refusals, true)) {
        throw new RuntimeException($m->getResultCode() . ' ' . $m->getResultMessage());
    }
    return $answer;
}

// The calls of `kvref conform-client`.
function made(Memcached $m, string $name, array $given): mixed
{
    [$key, $one, $two] = $given + [null, null, null];
    switch ($name) {
        case 'get':
            return got($m, $m->get($key));
        case 'get_multi':
            return (object) array_filter(got($m, $m->getMulti($key)) ?? [], fn ($each) => $each !== null);
        case 'gets':
            $found = got($m, $m->get($key, null, Memcached::GET_EXTENDED));
            return $found === null ? null : [$found['value'], $found['cas']];
        case 'cas':
            return done($m, $m->cas($two, $key, $one));
        case 'incr':
            return got($m, $m->increment($key, $one));
        case 'decr':
            return got($m, $m->decrement($key, $one));
        case 'append':
        case 'prepend':
            $m->setOption(Memcached::OPT_COMPRESSION, false);
            return done($m, $m->$name($key, $one));
        case 'set':
        case 'add':
        case 'replace':
        case 'touch':
            return done($m, $m->$name($key, $one));
        case 'delete':
            return done($m, $m->delete($key));
    }
    throw new Cannot("no call $name");
}

// Make the calls that standard input lists, a JSON array a line, each with a line of its result.
while ($calls && ($line = fgets(STDIN)) !== false) {
    $given = json_decode($line, true);
    $name = array_shift($given);
    try {
        if ($name === 'connect') {
            $m = connected($given[0], $given[1], $protocol, $timeout, $given[2] ?? []);
            tell(['returned' => true]);
        } else {
            tell(['returned' => made($m, $name, $given)]);
        }
    } catch (Cannot $call) {
        tell(['cannot' => $call->getMessage()]);
    } catch (Throwable $error) {
        tell(['raised' => $error->getMessage()]);
    }
}
if ($calls) {
    exit;
}

$m = connected($host, (int) $port, $protocol, $timeout);
$get = fn (string $key): mixed => got($m, $m->get($key));
$set = fn (string $key, mixed $value, int $ttl = 0): bool => done($m, $m->set($key, $value, $ttl));

$features = [
    'get' => function ($key) use ($m, $get, $set) {
        yield $set($key, 'one');
        yield $get($key);
        yield $get("$key-none");
        yield done($m, $m->delete($key));
        yield $get($key);
    },
    'values' => function ($key) use ($get, $set) {
        foreach ([42, str_repeat('kvref ', 700), ['a' => [1, 2.5, 'ü'], 'b' => null]] as $value) {
            $set($key, $value);
            yield $get($key) === $value;
        }
    },
    'multi' => function ($key) use ($m, $set) {
        $set("{$key}1", 'one');
        $set("{$key}2", 'two');
        $keys = ["{$key}1", "{$key}2", "$key-none"];
        $found = $m->getMulti($keys);
        foreach ($keys as $each) {
            yield $found[$each] ?? null;
        }
    },
    'store' => function ($key) use ($m, $get) {
        yield done($m, $m->add($key, 'one'));
        yield done($m, $m->add($key, 'two'));
        yield done($m, $m->replace($key, 'two'));
        yield done($m, $m->replace("$key-none", 'two'));
        yield $get($key);
    },
    'append' => function ($key) use ($m, $get, $set) {
        // The extension refuses to append to what it may compress.
        $m->setOption(Memcached::OPT_COMPRESSION, false);
        try {
            $set($key, 'two');
            yield done($m, $m->append($key, '>'));
            yield done($m, $m->prepend($key, '<'));
            yield $get($key);
        } finally {
            $m->setOption(Memcached::OPT_COMPRESSION, true);
        }
    },
    'cas' => function ($key) use ($m, $get, $set) {
        $set($key, 'one');
        $found = got($m, $m->get($key, null, Memcached::GET_EXTENDED));
        yield $found['value'];
        yield done($m, $m->cas($found['cas'], $key, 'two'));
        yield done($m, $m->cas($found['cas'], $key, 'three'));
        yield $get($key);
    },
    'incr' => function ($key) use ($m, $set) {
        $set($key, 5);
        yield got($m, $m->increment($key, 3));
        yield got($m, $m->decrement($key, 2));
        yield got($m, $m->decrement($key, 10));
    },
    'initial' => function ($key) use ($m, $protocol) {
        if ($protocol !== 'binary') {
            throw new Cannot('its initial value needs the binary protocol');
        }
        yield got($m, $m->increment($key, 3, 5));
        yield got($m, $m->increment($key, 3, 5));
    },
    'expiry' => function ($key) use ($get, $set) {
        $set($key, 'one', 2);
        yield $get($key);
        yield 'wait';
        yield $get($key);
    },
    'touch' => function ($key) use ($m, $get, $set) {
        $set($key, 'one', 2);
        yield done($m, $m->touch($key, 100));
        yield done($m, $m->touch("$key-none", 100));
        yield 'wait';
        yield $get($key);
    },
    'gat' => function () {
        throw new Cannot('no call gat');
        yield;
    },
    'at' => function ($key) use ($get, $set) {
        yield $set("@@bbb.$key", 'other');
        yield $get("@@bbc.$key");
        yield $get("@@aaa.$key");
    },
    'multi_at' => function ($key) use ($m, $set) {
        $set("@@bbb.{$key}1", 'one');
        $set("@@aaa.{$key}2", 'two');
        $keys = ["@@bbc.{$key}1", "@@aaa.{$key}2"];
        $found = $m->getMulti($keys);
        foreach ($keys as $each) {
            yield $found[$each] ?? null;
        }
    },
    'bind' => function () {
        throw new Cannot('no call raw');
        yield;
    },
];

// Take what comes up to the wait, where the second call goes on, or the end.
function advance(Generator $steps, array &$line): void
{
    if (isset($line['cannot'])) {
        return;
    }
    try {
        for ($first = true; $steps->valid(); $steps->next(), $first = false) {
            if ($steps->current() !== 'wait') {
                $line['came'][] = $steps->current();
            } elseif (!$first) {
                return;
            }
        }
    } catch (Cannot $call) {
        $line['cannot'] = $call->getMessage();
    } catch (Throwable $error) {
        $line['came'][] = 'error: ' . $error->getMessage();
    }
}

$begun = [];
foreach ($features as $name => $feature) {
    // `at` leaves the connection in another container: after the waiting ones.
    if ($name === 'at') {
        usleep(3200000);
        foreach (['expiry', 'touch', 'gat'] as $waiting) {
            advance($begun[$waiting][0], $begun[$waiting][1]);
            tell($begun[$waiting][1]);
        }
    }
    $begun[$name] = [$feature("$prefix-$name"), ['feature' => $name, 'came' => []]];
    advance($begun[$name][0], $begun[$name][1]);
    if (!in_array($name, ['expiry', 'touch', 'gat'], true)) {
        tell($begun[$name][1]);
    }
}
