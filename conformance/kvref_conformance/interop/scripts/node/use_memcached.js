// memcached (3rd-Eden): text, with its JSON for objects.
'use strict';

const Memcached = require('memcached');
const { main } = require('./contract');
const { version } = require('memcached/package.json');

// Its word for what was refused for want of a row or because there is one.
const REFUSED = 'Item is not stored';

main('memcached', version, (host, port, _, timeout) => {
  const m = new Memcached(`${host}:${port}`, { poolSize: 1, retries: 0, timeout: timeout * 1000, reconnect: 100, retry: 100 });
  const ask = (call, ...given) =>
    new Promise((go, fail) => m[call](...given, (error, came) => (error ? fail(error) : go(came))));
  const told = (call, ...given) =>
    ask(call, ...given).catch((error) => {
      if (error.message === REFUSED) return false;
      throw error;
    });
  const get = async (key) => (await ask('get', key)) ?? null;
  return {
    values: [42, 'kvref '.repeat(700), { a: [1, 2.5, 'ü'], b: null }],
    set: (key, value, ttl) => ask('set', key, value, ttl),
    get,
    rawGet: get,
    delete: (key) => ask('del', key),
    getMulti: (keys) => ask('getMulti', keys),
    add: (key, value) => told('add', key, value, 0),
    replace: (key, value) => told('replace', key, value, 0),
    append: (key, value) => told('append', key, value),
    prepend: (key, value) => told('prepend', key, value),
    gets: async (key) => {
      const found = await ask('gets', key);
      return [found[key], found.cas];
    },
    cas: (key, value, number) => told('cas', key, value, number, 0),
    incr: (key, by) => ask('incr', key, by),
    decr: (key, by) => ask('decr', key, by),
    touch: (key, ttl) => ask('touch', key, ttl),
  };
});
