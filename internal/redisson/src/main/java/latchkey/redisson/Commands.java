package latchkey.redisson;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;

import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** What a thread can be told to do. Times are microseconds of the machine's clock. */
final class Commands {
    private final RedissonClient client;

    Commands(RedissonClient client) {
        this.client = client;
    }

    Object run(String command, String[] args) throws Exception {
        if (command.equals("owner")) {
            return client.getId() + ":" + Thread.currentThread().getId();
        }
        RLock lock = client.getLock(args[0]);
        switch (command) {
            case "lock": // [lease]; when the lock was had
                if (args.length > 1) {
                    lock.lock(Long.parseLong(args[1]), MILLISECONDS);
                } else {
                    lock.lock();
                }
                return now();
            case "tryLock": // [wait [lease]]
                return switch (args.length) {
                    case 1 -> lock.tryLock();
                    case 2 -> lock.tryLock(Long.parseLong(args[1]), MILLISECONDS);
                    default -> lock.tryLock(Long.parseLong(args[1]), Long.parseLong(args[2]), MILLISECONDS);
                };
            case "unlock": // when the release began
                long began = now();
                lock.unlock();
                return began;
            case "forceUnlock":
                return lock.forceUnlock();
            case "isLocked":
                return lock.isLocked();
            case "isHeld":
                return lock.isHeldByCurrentThread();
            case "count":
                return lock.getHoldCount();
            case "ttl":
                return lock.remainTimeToLive();
            case "tryReadLock":
                return client.getReadWriteLock(args[0]).readLock().tryLock();
            case "readLock": // when the lock was had
                client.getReadWriteLock(args[0]).readLock().lock();
                return now();
            case "readUnlock":
                client.getReadWriteLock(args[0]).readLock().unlock();
                return null;
            case "tryWriteLock":
                return client.getReadWriteLock(args[0]).writeLock().tryLock();
            case "visit": // folder, ms of a turn, most turns, ms of all; turns, those that met another, longest wait
                return visit(lock, new Room(Path.of(args[1]), Long.parseLong(args[2])), Long.parseLong(args[3]), Long.parseLong(args[4]));
            default:
                throw new IllegalArgumentException("what is " + command + "?");
        }
    }

    private static String visit(RLock lock, Room room, long turns, long millis) throws Exception {
        long end = now() + millis * 1000;
        long done = 0;
        long met = 0;
        long longest = 0;
        for (long began; done < turns && (began = now()) < end; done++) {
            lock.lock();
            try {
                longest = Math.max(longest, now() - began);
                if (!room.visit()) {
                    met++;
                }
            } finally {
                lock.unlock();
            }
        }
        return done + " " + met + " " + longest;
    }

    private static long now() {
        return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    }
}
