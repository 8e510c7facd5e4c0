package latchkey.redisson;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A critical section that is seen from outside: a count in a file, read, incremented
 * and written, and a file that is there while somebody is inside. With the count there
 * is who came last, and how often that was one of the other side.
 */
final class Room {
    private final Path count;
    private final Path inside;
    private final long stay;

    /** A visit takes stay milliseconds, beside the files. */
    Room(Path folder, long stay) {
        count = folder.resolve("count");
        inside = folder.resolve("inside");
        this.stay = stay;
    }

    /** Says whether nobody else was inside. */
    boolean visit() throws IOException, InterruptedException {
        boolean alone = true;
        try {
            Files.createFile(inside);
        } catch (FileAlreadyExistsException e) {
            alone = false;
        }
        String[] seen = Files.readString(count).split(" ");
        if (stay > 0) {
            Thread.sleep(stay);
        }
        long changes = Long.parseLong(seen[2]) + (seen[1].equals("Go") ? 1 : 0);
        Files.writeString(count, (Long.parseLong(seen[0]) + 1) + " Java " + changes);
        return Files.deleteIfExists(inside) && alone;
    }
}
