// spymemcached, with its serializing and compression: text or binary. What should come is in ../../features.toml.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import net.spy.memcached.BinaryConnectionFactory;
import net.spy.memcached.CASResponse;
import net.spy.memcached.CASValue;
import net.spy.memcached.ConnectionFactoryBuilder;
import net.spy.memcached.ConnectionFactoryBuilder.Protocol;
import net.spy.memcached.DefaultConnectionFactory;
import net.spy.memcached.MemcachedClient;
import net.spy.memcached.auth.AuthDescriptor;
import net.spy.memcached.auth.PlainCallbackHandler;
import net.spy.memcached.internal.OperationFuture;

public final class UseSpymemcached {
    /** A part of a feature adds to `came` what comes. */
    interface Part {
        void run(String key, List<Object> came) throws Exception;
    }

    static final class Cannot extends Exception {
        Cannot(String call) {
            super(call);
        }
    }

    static final class Line {
        final String feature;
        final List<Object> came = new ArrayList<>();
        String cannot;

        Line(String feature) {
            this.feature = feature;
        }

        void advance(Part part, String key) {
            if (cannot != null || came.stream().anyMatch(each -> String.valueOf(each).startsWith("error: "))) {
                return;
            }
            try {
                part.run(key, came);
            } catch (Cannot call) {
                cannot = call.getMessage();
            } catch (Exception error) {
                Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
                came.add("error: " + cause);
            }
        }

        void tell() {
            StringBuilder all = new StringBuilder();
            for (Object each : came) {
                boolean bare = each == null || each instanceof Boolean || each instanceof Number;
                all.append(all.length() > 0 ? ", " : "").append(bare ? each : quoted(each.toString()));
            }
            String more = cannot == null ? "" : ", \"cannot\": " + quoted(cannot);
            OUT.println("{\"feature\": \"" + feature + "\", \"came\": [" + all + "]" + more + "}");
        }
    }

    static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    static MemcachedClient client;
    static boolean binary;
    static long patience = 5000;

    static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replaceAll("[\\x00-\\x1f]", " ") + '"';
    }

    static <T> T wait(OperationFuture<T> future) throws Exception {
        return future.get(patience, TimeUnit.MILLISECONDS);
    }

    static boolean set(String key, Object value, int ttl) throws Exception {
        return wait(client.set(key, ttl, value));
    }

    static void get(String key, List<Object> came) throws Exception {
        came.add(set(key, "one", 0));
        came.add(client.get(key));
        came.add(client.get(key + "-none"));
        came.add(wait(client.delete(key)));
        came.add(client.get(key));
    }

    static void values(String key, List<Object> came) throws Exception {
        Map<String, Object> structure = new HashMap<>();
        structure.put("a", new ArrayList<Object>(List.of(1, 2.5, "ü")));
        structure.put("b", null);
        for (Object value : List.of(42, "kvref ".repeat(3500), structure)) {
            set(key, value, 0);
            came.add(value.equals(client.get(key)));
        }
    }

    static void multi(String key, List<Object> came) throws Exception {
        List<String> keys = List.of(key + "1", key + "2", key + "-none");
        set(keys.get(0), "one", 0);
        set(keys.get(1), "two", 0);
        Map<String, Object> found = client.getBulk(keys);
        keys.forEach(each -> came.add(found.get(each)));
    }

    static void store(String key, List<Object> came) throws Exception {
        came.add(wait(client.add(key, 0, "one")));
        came.add(wait(client.add(key, 0, "two")));
        came.add(wait(client.replace(key, 0, "two")));
        came.add(wait(client.replace(key + "-none", 0, "two")));
        came.add(client.get(key));
    }

    static void append(String key, List<Object> came) throws Exception {
        set(key, "two", 0);
        came.add(wait(client.append(key, ">")));
        came.add(wait(client.prepend(key, "<")));
        came.add(client.get(key));
    }

    static void cas(String key, List<Object> came) throws Exception {
        set(key, "one", 0);
        CASValue<Object> found = client.gets(key);
        came.add(found.getValue());
        came.add(client.cas(key, found.getCas(), "two") == CASResponse.OK);
        came.add(client.cas(key, found.getCas(), "three") == CASResponse.OK);
        came.add(client.get(key));
    }

    static void incr(String key, List<Object> came) throws Exception {
        set(key, "5", 0);
        came.add(client.incr(key, 3));
        came.add(client.decr(key, 2));
        came.add(client.decr(key, 10));
    }

    static void initial(String key, List<Object> came) throws Exception {
        came.add(client.incr(key, 3, 5));
        came.add(client.incr(key, 3, 5));
    }

    static void shortly(String key, List<Object> came) throws Exception {
        set(key, "one", 2);
        came.add(client.get(key));
    }

    static void touch(String key, List<Object> came) throws Exception {
        set(key, "one", 2);
        came.add(wait(client.touch(key, 100)));
        came.add(wait(client.touch(key + "-none", 100)));
    }

    static void gat(String key, List<Object> came) throws Exception {
        if (!binary) {
            throw new Cannot("getAndTouch is binary only");
        }
        set(key, "one", 2);
        for (String each : List.of(key, key + "-none")) {
            CASValue<Object> found = client.getAndTouch(each, 100);
            came.add(found == null ? null : found.getValue());
        }
    }

    static void later(String key, List<Object> came) {
        came.add(client.get(key));
    }

    static void at(String key, List<Object> came) throws Exception {
        came.add(set("@@bbb." + key, "other", 0));
        came.add(client.get("@@bbc." + key));
        came.add(client.get("@@aaa." + key));
    }

    static void multiAt(String key, List<Object> came) throws Exception {
        set("@@bbb." + key + "1", "one", 0);
        set("@@aaa." + key + "2", "two", 0);
        List<String> keys = List.of("@@bbc." + key + "1", "@@aaa." + key + "2");
        Map<String, Object> found = client.getBulk(keys);
        keys.forEach(each -> came.add(found.get(each)));
    }

    static void bind(String key, List<Object> came) throws Exception {
        throw new Cannot("no call raw");
    }

    /** Reads one JSON value: an array, an object, a text or a number. */
    static final class Json {
        private final String text;
        private int at;

        Json(String text) {
            this.text = text;
        }

        Object value() {
            while (" ,".indexOf(text.charAt(at)) >= 0) {
                at++;
            }
            if (text.charAt(at) == '[') {
                return array();
            }
            if (text.charAt(at) == '{') {
                return object();
            }
            if (text.charAt(at) == '"') {
                return string();
            }
            int start = at;
            while ("+-.0123456789".indexOf(text.charAt(at)) >= 0) {
                at++;
            }
            String digits = text.substring(start, at);
            return digits.startsWith("-") ? Long.parseLong(digits) : Long.parseUnsignedLong(digits);
        }

        private List<Object> array() {
            List<Object> found = new ArrayList<>();
            at++;
            while (text.charAt(at) != ']') {
                found.add(value());
            }
            at++;
            return found;
        }

        private Map<String, Object> object() {
            Map<String, Object> found = new HashMap<>();
            at++;
            while (text.charAt(at) != '}') {
                String name = (String) value();
                at = text.indexOf(':', at) + 1;
                found.put(name, value());
            }
            at++;
            return found;
        }

        private String string() {
            StringBuilder found = new StringBuilder();
            for (at++; text.charAt(at) != '"'; at++) {
                char sign = text.charAt(at);
                if (sign == '\\') {
                    sign = text.charAt(++at);
                    int place = "nrtbf".indexOf(sign);
                    if (sign == 'u') {
                        sign = (char) Integer.parseInt(text.substring(at + 1, at + 5), 16);
                        at += 4;
                    } else if (place >= 0) {
                        sign = "\n\r\t\b\f".charAt(place);
                    }
                }
                found.append(sign);
            }
            at++;
            return found.toString();
        }
    }

    static String json(Object value) {
        if (value instanceof Map) {
            List<String> parts = new ArrayList<>();
            ((Map<?, ?>) value).forEach((key, each) -> parts.add(json(key) + ": " + json(each)));
            return "{" + String.join(", ", parts) + "}";
        }
        if (value instanceof List) {
            List<String> parts = new ArrayList<>();
            ((List<?>) value).forEach(each -> parts.add(json(each)));
            return "[" + String.join(", ", parts) + "]";
        }
        if (value == null || value instanceof Boolean || value instanceof Number) {
            return String.valueOf(value);
        }
        StringBuilder found = new StringBuilder("\"");
        for (char sign : value.toString().toCharArray()) {
            found.append(sign < ' ' || sign == '"' || sign == '\\' ? String.format("\\u%04x", (int) sign) : sign);
        }
        return found.append('"').toString();
    }

    /** A call of `kvref conform-client`. */
    static Object made(String name, List<Object> given) throws Exception {
        if (name.equals("get_multi")) {
            List<String> keys = new ArrayList<>();
            ((List<?>) given.get(0)).forEach(each -> keys.add((String) each));
            return client.getBulk(keys);
        }
        String key = (String) given.get(0);
        Object more = given.size() > 1 ? given.get(1) : null;
        switch (name) {
            case "get":
                return client.get(key);
            case "gets":
                CASValue<Object> found = client.gets(key);
                return found == null ? null : List.of(found.getValue(), found.getCas());
            case "gat":
                if (!binary) {
                    throw new Cannot("getAndTouch is binary only");
                }
                CASValue<Object> touched = client.getAndTouch(key, ((Long) more).intValue());
                return touched == null ? null : touched.getValue();
            case "cas":
                return client.cas(key, (Long) given.get(2), more) == CASResponse.OK;
            case "set":
                return wait(client.set(key, 0, more));
            case "add":
                return wait(client.add(key, 0, more));
            case "replace":
                return wait(client.replace(key, 0, more));
            case "append":
                return wait(client.append(key, more));
            case "prepend":
                return wait(client.prepend(key, more));
            case "delete":
                return wait(client.delete(key));
            case "touch":
                return wait(client.touch(key, ((Long) more).intValue()));
            case "incr":
            case "decr":
                long sum = name.equals("incr") ? client.incr(key, (Long) more) : client.decr(key, (Long) more);
                return sum == -1 ? null : sum;
            default:
                throw new Cannot("no call " + name);
        }
    }

    /** SASL of the binary protocol is the only option. */
    static AuthDescriptor authentication(Map<?, ?> options) throws Cannot {
        for (Object option : options.keySet()) {
            if (!binary || !option.equals("credentials")) {
                throw new Cannot("no option " + option);
            }
        }
        List<?> given = (List<?>) options.get("credentials");
        return new AuthDescriptor(
            new String[] {"PLAIN"}, new PlainCallbackHandler((String) given.get(0), (String) given.get(1)));
    }

    /** Make the calls that standard input lists, a JSON array a line, each with a line of its result. */
    static void serve(long timeout) throws Exception {
        patience = timeout;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            @SuppressWarnings("unchecked")
            List<Object> given = (List<Object>) new Json(line).value();
            String name = (String) given.remove(0);
            try {
                Object returned = true;
                if (name.equals("connect")) {
                    if (client != null) {
                        client.shutdown();
                    }
                    int port = ((Long) given.get(1)).intValue();
                    ConnectionFactoryBuilder builder = new ConnectionFactoryBuilder()
                        .setProtocol(binary ? Protocol.BINARY : Protocol.TEXT)
                        .setOpTimeout(timeout)
                        .setMaxReconnectDelay(1);
                    if (given.size() > 2) {
                        builder.setAuthDescriptor(authentication((Map<?, ?>) given.get(2)));
                    }
                    client = new MemcachedClient(
                        builder.build(), List.of(new InetSocketAddress((String) given.get(0), port)));
                } else {
                    returned = made(name, given);
                }
                OUT.println("{\"returned\": " + json(returned) + "}");
            } catch (Cannot call) {
                OUT.println("{\"cannot\": " + json(call.getMessage()) + "}");
            } catch (Exception error) {
                Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
                OUT.println("{\"raised\": " + json(String.valueOf(cause)) + "}");
            }
        }
        System.exit(0);
    }

    static Line begin(String feature, Part part, String prefix) {
        Line line = new Line(feature);
        line.advance(part, prefix + "-" + feature);
        return line;
    }

    /** Run the contract: arguments HOST PORT PROTOCOL PREFIX. */
    public static void main(String[] arguments) throws Exception {
        String jar = MemcachedClient.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        String version = jar.replaceAll(".*spymemcached-(.*)\\.jar", "$1");
        OUT.println("{\"client\": \"spymemcached\", \"version\": " + quoted(version) + ", \"runtime\": \"Java "
            + System.getProperty("java.version") + "\"}");
        boolean calls = arguments[0].equals("--calls");
        binary = arguments[calls ? 1 : 2].equals("binary");
        System.setProperty("net.spy.log.LoggerImpl", "net.spy.memcached.compat.log.SunLogger");
        java.util.logging.Logger.getLogger("net.spy.memcached").setLevel(java.util.logging.Level.OFF);
        if (calls) {
            serve((long) (Double.parseDouble(arguments[2]) * 1000));
        }
        String prefix = arguments[3];
        InetSocketAddress address = new InetSocketAddress(arguments[0], Integer.parseInt(arguments[1]));
        client = new MemcachedClient(
            binary ? new BinaryConnectionFactory() : new DefaultConnectionFactory(), List.of(address));

        begin("get", UseSpymemcached::get, prefix).tell();
        begin("values", UseSpymemcached::values, prefix).tell();
        begin("multi", UseSpymemcached::multi, prefix).tell();
        begin("store", UseSpymemcached::store, prefix).tell();
        begin("append", UseSpymemcached::append, prefix).tell();
        begin("cas", UseSpymemcached::cas, prefix).tell();
        begin("incr", UseSpymemcached::incr, prefix).tell();
        begin("initial", UseSpymemcached::initial, prefix).tell();
        List<Line> waiting = List.of(
            begin("expiry", UseSpymemcached::shortly, prefix),
            begin("touch", UseSpymemcached::touch, prefix),
            begin("gat", UseSpymemcached::gat, prefix));
        Thread.sleep(3200);
        waiting.forEach(line -> line.advance(UseSpymemcached::later, prefix + "-" + line.feature));
        waiting.forEach(Line::tell);
        begin("at", UseSpymemcached::at, prefix).tell();
        begin("multi_at", UseSpymemcached::multiAt, prefix).tell();
        begin("bind", UseSpymemcached::bind, prefix).tell();
        System.exit(0);
    }
}
