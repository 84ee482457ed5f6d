// nodecached takes a port and no address, with which it would listen on every interface.
'use strict';

const { Server } = require('net');

const { listen } = Server.prototype;
Server.prototype.listen = function (port, ...rest) {
  return listen.call(this, port, '127.0.0.1', ...rest);
};
