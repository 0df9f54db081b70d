package io.evenlag;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;

/** A plan in a file, which may be replaced at any time. */
final class PlanFile implements Plans {
    private final Path path;
    private final String group;
    private byte[] last;

    PlanFile(Path path, String group) {
        this.path = path;
        this.group = group;
    }

    @Override
    public List<News> news(Duration limit) throws UnreadException {
        byte[] content;
        try {
            content = Files.readAllBytes(path);
        } catch (NoSuchFileException exception) {
            last = null;
            throw new UnreadException(path + ": cannot be read (no such file)");
        } catch (IOException exception) {
            last = null;
            throw new UnreadException(path + ": cannot be read (" + exception + ")");
        }
        if (Arrays.equals(content, last)) {
            return List.of();
        }
        last = content;
        return List.of(News.of(path.toString(), content, group));
    }

    @Override
    public boolean isQuick() {
        return true;
    }

    @Override
    public void close() {
        last = null;
    }

    @Override
    public String toString() {
        return path.toString();
    }
}
