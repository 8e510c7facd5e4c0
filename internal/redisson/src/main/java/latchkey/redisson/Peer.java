package latchkey.redisson;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.ShardedSubscriptionMode;

/**
 * A process with one Redisson client that does what it is told, one request a line
 * on stdin: number, thread, command, arguments, with tabs between. A thread works
 * off its requests in order, threads work side by side. Each request has one answer
 * on stdout: its number, "ok" and the result, or "failed", the exception and what it
 * says. The first line on stdout is "ready", Redisson's version and the client's id.
 * The process ends with its stdin.
 *
 * Arguments are of the form name=value: address (any number), watchdog (ms), and on a
 * cluster mode (AUTO, ON or OFF). User and password belong to an ACL.
 */
public final class Peer {
    private final PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
    private final Map<String, ExecutorService> threads = new HashMap<>();
    private final Commands commands;

    private Peer(RedissonClient client) {
        commands = new Commands(client);
        answer("ready", Redisson.class.getPackage().getImplementationVersion(), client.getId());
    }

    public static void main(String[] args) throws Exception {
        // Redisson counts on daemon threads only in part, so nothing is shut down in order.
        new Peer(Redisson.create(config(args))).serve();
        Runtime.getRuntime().halt(0);
    }

    private static Config config(String[] args) {
        Map<String, String> given = new HashMap<>();
        for (String arg : args) {
            String[] part = arg.split("=", 2);
            given.merge(part[0], part[1], (a, b) -> a + "," + b);
        }
        Config config = new Config();
        config.setLockWatchdogTimeout(Long.parseLong(given.getOrDefault("watchdog", "30000")));
        config.setUsername(given.get("user"));
        config.setPassword(given.get("password"));
        String[] addresses = given.get("address").split(",");
        if (given.containsKey("mode")) {
            config.useClusterServers().addNodeAddress(addresses)
                    .setShardedSubscriptionMode(ShardedSubscriptionMode.valueOf(given.get("mode")))
                    .setMasterConnectionMinimumIdleSize(2);
        } else {
            config.useSingleServer().setAddress(addresses[0]).setConnectionMinimumIdleSize(2);
        }
        return config;
    }

    private void serve() throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            String[] part = line.split("\t", -1);
            threads.computeIfAbsent(part[1], name -> Executors.newSingleThreadExecutor())
                    .execute(() -> run(part[0], part[2], Arrays.copyOfRange(part, 3, part.length)));
        }
    }

    private void run(String number, String command, String[] args) {
        try {
            answer(number, "ok", String.valueOf(commands.run(command, args)));
        } catch (Throwable e) {
            answer(number, "failed", e.getClass().getSimpleName(), String.valueOf(e.getMessage()).replaceAll("\\s+", " "));
        }
    }

    private synchronized void answer(String... parts) {
        out.println(String.join("\t", parts));
    }
}
