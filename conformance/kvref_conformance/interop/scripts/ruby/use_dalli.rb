# dalli, with its Marshal and compression: binary, or meta commands.
# What should come is in ../../features.toml.
require 'dalli'
require 'json'

HOST, PORT, PROTOCOL, PREFIX = ARGV
Cannot = Class.new(StandardError)
$stdout.sync = true
Dalli.logger.level = Logger::FATAL

def tell(line)
  puts JSON.generate(line)
end

tell(client: 'dalli', version: Dalli::VERSION, runtime: "Ruby #{RUBY_VERSION}")
OPTIONS = { protocol: PROTOCOL.to_sym, compress: true, socket_timeout: 5, socket_max_failures: 0, threadsafe: false }
M = Dalli::Client.new("#{HOST}:#{PORT}", OPTIONS)
RAW = { raw: true }.freeze

# A number (of cas) or true is success, false or nil a refusal.
def done(answer)
  answer ? true : false
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
