// What both Node clients are asked: the calls of each feature, and what came back as JSON lines.
// A client is an object of its calls, each a promise; one that is missing it cannot do.
// What should come is in ../../features.toml.
'use strict';

const { createInterface } = require('node:readline');
const { isDeepStrictEqual } = require('node:util');

class Cannot extends Error {}

const FEATURES = {
  async *get(c, key) {
    yield await c.set(key, 'one', 0);
    yield await c.get(key);
    yield await c.get(`${key}-none`);
    yield await c.delete(key);
    yield await c.get(key);
  },
  async *values(c, key) {
    for (const value of c.values) {
      await c.set(key, value, 0);
      yield isDeepStrictEqual(await c.rawGet(key), value);
    }
  },
  async *multi(c, key) {
    const keys = [`${key}1`, `${key}2`, `${key}-none`];
    await c.set(keys[0], 'one', 0);
    await c.set(keys[1], 'two', 0);
    const found = await c.getMulti(keys);
    for (const each of keys) yield found[each] ?? null;
  },
  async *store(c, key) {
    yield await c.add(key, 'one');
    yield await c.add(key, 'two');
    yield await c.replace(key, 'two');
    yield await c.replace(`${key}-none`, 'two');
    yield await c.get(key);
  },
  async *append(c, key) {
    await c.set(key, 'two', 0);
    yield await c.append(key, '>');
    yield await c.prepend(key, '<');
    yield await c.get(key);
  },
  async *cas(c, key) {
    await c.set(key, 'one', 0);
    const [value, number] = await c.gets(key);
    yield value;
    yield await c.cas(key, 'two', number);
    yield await c.cas(key, 'three', number);
    yield await c.get(key);
  },
  async *incr(c, key) {
    await c.set(key, '5', 0);
    yield await c.incr(key, 3);
    yield await c.decr(key, 2);
    yield await c.decr(key, 10);
  },
  async *initial(c, key) {
    yield await c.incrFrom(key, 3, 5);
    yield await c.incrFrom(key, 3, 5);
  },
  async *expiry(c, key) {
    await c.set(key, 'one', 2);
    yield await c.get(key);
    yield 'wait';
    yield await c.get(key);
  },
  async *touch(c, key) {
    await c.set(key, 'one', 2);
    yield await c.touch(key, 100);
    yield await c.touch(`${key}-none`, 100);
    yield 'wait';
    yield await c.get(key);
  },
  async *gat(c, key) {
    await c.set(key, 'one', 2);
    yield await c.gat(key, 100);
    yield await c.gat(`${key}-none`, 100);
    yield 'wait';
    yield await c.get(key);
  },
  async *at(c, key) {
    yield await c.set(`@@bbb.${key}`, 'other', 0);
    yield await c.get(`@@bbc.${key}`);
    yield await c.get(`@@aaa.${key}`);
  },
  async *multi_at(c, key) {
    const { getMulti } = c;
    await c.set(`@@bbb.${key}1`, 'one', 0);
    await c.set(`@@aaa.${key}2`, 'two', 0);
    const keys = [`@@bbc.${key}1`, `@@aaa.${key}2`];
    const found = await getMulti(keys);
    for (const each of keys) yield found[each] ?? null;
  },
  async *bind(c) {
    yield await c.raw('bind bbc');
  },
};
const AT_ONCE = ['get', 'values', 'multi', 'store', 'append', 'cas', 'incr', 'initial'];
const WAITING = ['expiry', 'touch', 'gat'];
// Last, because they leave the connection in another container.
const SWITCHING = ['at', 'multi_at', 'bind'];
const WAIT_MS = 3200;
const PATIENCE_MS = 5000;

// A call that is never answered is an error too.
function patient(promise) {
  let timer;
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error(`no answer in ${PATIENCE_MS} ms`)), PATIENCE_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// Take what comes up to the wait or the end.
async function advance(line, steps) {
  try {
    for (;;) {
      const { value, done } = await steps.next();
      if (done || value === 'wait') return;
      line.came.push(value);
    }
  } catch (error) {
    if (error instanceof Cannot) line.cannot = error.message;
    else line.came.push(`error: ${error.message ?? error}`);
  }
}

const NAMES = { get_multi: 'getMulti' };
const TTL = { set: [0] };

// `known` are the options of `connect` that the client has, such as credentials.
// Make the calls that standard input lists, a JSON array a line, each with a line of its result.
async function serve(connect, known, protocol, timeout, tell) {
  let calls = {};
  for await (const line of createInterface({ input: process.stdin })) {
    const [name, ...given] = JSON.parse(line);
    if (name === 'connect') {
      const options = given[2] ?? {};
      const lack = Object.keys(options).filter((option) => !known.includes(option));
      if (lack.length) {
        tell({ cannot: `no option ${lack[0]}` });
        continue;
      }
      calls = connect(given[0], String(given[1]), protocol, timeout, options);
      tell({ returned: true });
      continue;
    }
    const call = calls[NAMES[name] ?? name];
    if (!call) {
      tell({ cannot: `no call ${name}` });
      continue;
    }
    try {
      const returned = await call(...given, ...(TTL[name] ?? []));
      tell({ returned: returned === undefined ? null : returned });
    } catch (error) {
      tell({ raised: String(error?.message ?? error).slice(0, 200) });
    }
  }
  process.exit(0);
}

async function main(name, version, connect, known = []) {
  const tell = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
  tell({ client: name, version, runtime: `Node ${process.versions.node}` });
  if (process.argv[2] === '--calls') return serve(connect, known, process.argv[3], Number(process.argv[4]), tell);
  const [host, port, protocol, prefix] = process.argv.slice(2);
  const calls = connect(host, port, protocol, PATIENCE_MS / 1000);
  const c = new Proxy(calls, {
    get(_, call) {
      if (!(call in calls)) throw new Cannot(`no call ${call}`);
      return typeof calls[call] === 'function' ? (...given) => patient(calls[call](...given)) : calls[call];
    },
  });
  const begin = async (names) => {
    const begun = [];
    for (const each of names) {
      const line = { feature: each, came: [] };
      const steps = FEATURES[each](c, `${prefix}-${each}`);
      await advance(line, steps);
      begun.push([line, steps]);
    }
    return begun;
  };
  const tellAll = (begun) => begun.forEach(([line]) => tell(line));
  tellAll(await begin(AT_ONCE));
  const waiting = await begin(WAITING);
  await new Promise((go) => setTimeout(go, WAIT_MS));
  for (const [line, steps] of waiting) await advance(line, steps);
  tellAll(waiting);
  tellAll(await begin(SWITCHING));
  process.exit(0);
}

module.exports = { main };
