# dalli, with its Marshal and compression: binary, or meta commands.
# What should come is in ../../features.toml.
require 'dalli'
require 'json'
require 'openssl'

CALLS = ARGV.first == '--calls'
HOST, PORT, PROTOCOL, PREFIX = CALLS ? ['', 0, ARGV[1], ''] : ARGV
TIMEOUT = CALLS ? ARGV[2].to_f : 5
Cannot = Class.new(StandardError)
$stdout.sync = true
Dalli.logger.level = Logger::FATAL

def tell(line)
  puts JSON.generate(line)
end

tell(client: 'dalli', version: Dalli::VERSION, runtime: "Ruby #{RUBY_VERSION}")
OPTIONS = { protocol: PROTOCOL.to_sym, compress: true, socket_timeout: TIMEOUT, socket_max_failures: 0,
            down_retry_delay: 0.1, threadsafe: false }
M = Dalli::Client.new("#{HOST}:#{PORT}", OPTIONS)
RAW = { raw: true }.freeze

# A number (of cas) or true is success, false or nil a refusal.
def done(answer)
  answer ? true : false
end

# The calls of `kvref conform-client`.
def made(client, name, key, *rest)
  case name
  when 'get' then client.get(key)
  when 'get_multi' then client.get_multi(*key)
  when 'gets' then client.get_cas(key)
  when 'set' then done(client.set(key, rest[0], 0, RAW))
  when 'add', 'replace' then done(client.public_send(name, key, rest[0], 0, RAW))
  when 'set_noreply' then client.quiet { client.set(key, rest[0], 0, RAW) } || true
  when 'append', 'prepend', 'touch' then done(client.public_send(name, key, rest[0]))
  when 'cas' then done(client.set_cas(key, rest[0], rest[1], 0, RAW))
  when 'incr', 'decr' then client.public_send(name, key, rest[0])
  when 'delete' then done(client.delete(key))
  when 'gat' then client.gat(key, rest[0])
  else raise Cannot, "no call #{name}"
  end
end

def text(value)
  value.is_a?(String) ? value.dup.force_encoding('UTF-8').scrub : value
end

def result(client, name, arguments)
  returned = made(client, name, *arguments)
  returned = returned[0].nil? ? nil : [text(returned[0]), returned[1]] if name == 'gets' && returned
  returned = returned.to_h { |key, value| [text(key), text(value)] } if returned.is_a?(Hash)
  { returned: text(returned) }
rescue Cannot => e
  { cannot: e.message }
rescue StandardError, NotImplementedError => e
  { raised: "#{e.class}: #{text(e.message)}"[0, 200] }
end

# Yield a client. The binary protocol alone has credentials.
def connected(host, port, options = {})
  return { cannot: 'no option credentials' } if options['credentials'] && PROTOCOL != 'binary'

  named = { username: options['credentials']&.at(0), password: options['credentials']&.at(1) }.compact
  named[:ssl_context] = trusting(options['ca']) if options['ca']
  yield Dalli::Client.new("#{host}:#{port}", OPTIONS.merge(named))
  { returned: true }
end

def trusting(file)
  OpenSSL::SSL::SSLContext.new.tap do |context|
    context.ca_file = file
    context.verify_mode = OpenSSL::SSL::VERIFY_PEER
    context.verify_hostname = true
  end
end

# Make the calls that standard input lists, a JSON array a line, each with a line of its result.
if CALLS
  client = M
  while (line = $stdin.gets)
    name, *arguments = JSON.parse(line)
    if name == 'connect'
      tell(connected(*arguments) { |made| client = made })
    else
      tell(result(client, name, arguments))
    end
  end
  exit
end

FEATURES = {
  get: lambda do |y, key|
    y << done(M.set(key, 'one'))
    y << M.get(key)
    y << M.get("#{key}-none")
    y << done(M.delete(key))
    y << M.get(key)
  end,
  values: lambda do |y, key|
    [42, 'kvref ' * 700, { 'a' => [1, 2.5, 'ü'], 'b' => nil }].each do |value|
      M.set(key, value)
      y << (M.get(key) == value)
    end
  end,
  multi: lambda do |y, key|
    M.set("#{key}1", 'one')
    M.set("#{key}2", 'two')
    keys = ["#{key}1", "#{key}2", "#{key}-none"]
    found = M.get_multi(*keys)
    keys.each { |each| y << found[each] }
  end,
  store: lambda do |y, key|
    y << done(M.add(key, 'one'))
    y << done(M.add(key, 'two'))
    y << done(M.replace(key, 'two'))
    y << done(M.replace("#{key}-none", 'two'))
    y << M.get(key)
  end,
  append: lambda do |y, key|
    M.set(key, 'two', 0, RAW)
    y << done(M.append(key, '>'))
    y << done(M.prepend(key, '<'))
    y << M.get(key)
  end,
  cas: lambda do |y, key|
    M.set(key, 'one')
    value, number = M.get_cas(key)
    y << value
    y << done(M.set_cas(key, 'two', number))
    y << done(M.set_cas(key, 'three', number))
    y << M.get(key)
  end,
  incr: lambda do |y, key|
    M.set(key, 5, 0, RAW)
    y << M.incr(key, 3)
    y << M.decr(key, 2)
    y << M.decr(key, 10)
  end,
  initial: lambda do |y, key|
    2.times { y << M.incr(key, 3, 0, 5) }
  end,
  expiry: lambda do |y, key|
    M.set(key, 'one', 2)
    y << M.get(key)
    Fiber.yield
    y << M.get(key)
  end,
  touch: lambda do |y, key|
    M.set(key, 'one', 2)
    y << done(M.touch(key, 100))
    y << done(M.touch("#{key}-none", 100))
    Fiber.yield
    y << M.get(key)
  end,
  gat: lambda do |y, key|
    M.set(key, 'one', 2)
    y << M.gat(key, 100)
    y << M.gat("#{key}-none", 100)
    Fiber.yield
    y << M.get(key)
  end,
  at: lambda do |y, key|
    y << done(M.set("@@bbb.#{key}", 'other'))
    y << M.get("@@bbc.#{key}")
    y << M.get("@@aaa.#{key}")
  end,
  multi_at: lambda do |y, key|
    M.set("@@bbb.#{key}1", 'one')
    M.set("@@aaa.#{key}2", 'two')
    keys = ["@@bbc.#{key}1", "@@aaa.#{key}2"]
    found = M.get_multi(*keys)
    keys.each { |each| y << found[each] }
  end,
  bind: ->(_, _) { raise Cannot, 'no call raw' }
}.freeze
WAITING = %i[expiry touch gat].freeze
SWITCHING = %i[at multi_at bind].freeze

# A feature goes on up to its wait or end each time it is resumed.
def begun(name)
  line = { feature: name, came: [] }
  fiber = Fiber.new do
    FEATURES[name].call(line[:came], "#{PREFIX}-#{name}")
  rescue Cannot => e
    line[:cannot] = e.message
  rescue StandardError => e
    line[:came] << "error: #{e.class}: #{e.message}"
  end
  fiber.resume
  [line, fiber]
end

(FEATURES.keys - WAITING - SWITCHING).each { |name| tell(begun(name).first) }
waiting = WAITING.map { |name| begun(name) }
sleep 3.2
waiting.each do |line, fiber|
  fiber.resume if fiber.alive?
  tell(line)
end
SWITCHING.each { |name| tell(begun(name).first) }
