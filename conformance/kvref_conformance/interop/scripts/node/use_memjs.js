// memjs: binary, bytes as they are.
'use strict';

const memjs = require('memjs');
const { main } = require('./contract');
const { version } = require('memjs/package.json');

main('memjs', version, (host, port, _, timeout, options = {}) => {
  const [username, password] = options.credentials ?? [];
  const m = memjs.Client.create(`${host}:${port}`, { retries: 0, timeout, logger: { log() {} }, username, password });
  const read = async (key) => (await m.get(key)).value;
  const get = async (key) => (await read(key))?.toString() ?? null;
  // The promise has no word for a miss; the callback has null.
  const incr = (call) => (key, by) =>
    new Promise((go, fail) => call.call(m, key, by, {}, (error, _, value) => (error ? fail(error) : go(value))));
  return {
    values: [Buffer.from('42'), Buffer.from('kvref '.repeat(700)), Buffer.from([...Array(256).keys()])],
    set: (key, value, expires) => m.set(key, value, { expires }),
    get,
    rawGet: read,
    delete: (key) => m.delete(key),
    add: (key, value) => m.add(key, value, {}),
    replace: (key, value) => m.replace(key, value, {}),
    append: (key, value) => m.append(key, value),
    prepend: (key, value) => m.prepend(key, value),
    incr: incr(m.increment),
    decr: incr(m.decrement),
    incrFrom: async (key, by, initial) => (await m.increment(key, by, { initial })).value,
    touch: (key, expires) => m.touch(key, expires),
  };
}, ['credentials']);
