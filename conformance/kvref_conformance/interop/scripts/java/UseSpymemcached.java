// spymemcached, with its serializing and compression: text or binary. What should come is in ../../features.toml.
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
import net.spy.memcached.DefaultConnectionFactory;
import net.spy.memcached.MemcachedClient;
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

    static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replaceAll("[\\x00-\\x1f]", " ") + '"';
    }

    static <T> T wait(OperationFuture<T> future) throws Exception {
        return future.get(5, TimeUnit.SECONDS);
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

    static Line begin(String feature, Part part, String prefix) {
        Line line = new Line(feature);
        line.advance(part, prefix + "-" + feature);
        return line;
    }

    /** Run the contract: arguments HOST PORT PROTOCOL PREFIX. */
    public static void main(String[] arguments) throws Exception {
        String prefix = arguments[3];
        String jar = MemcachedClient.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        String version = jar.replaceAll(".*spymemcached-(.*)\\.jar", "$1");
        OUT.println("{\"client\": \"spymemcached\", \"version\": " + quoted(version) + ", \"runtime\": \"Java "
            + System.getProperty("java.version") + "\"}");
        binary = arguments[2].equals("binary");
        System.setProperty("net.spy.log.LoggerImpl", "net.spy.memcached.compat.log.SunLogger");
        java.util.logging.Logger.getLogger("net.spy.memcached").setLevel(java.util.logging.Level.OFF);
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
