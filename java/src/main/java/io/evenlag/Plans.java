package io.evenlag;

import java.time.Duration;
import java.util.List;

/** A place where the plans of a group are published. Not safe for use by several threads at once. */
interface Plans extends AutoCloseable {
    /** A plan that was published, or why there is none. */
    final class News {
        final Plan plan;
        final String trouble;

        private News(Plan plan, String trouble) {
            this.plan = plan;
            this.trouble = trouble;
        }

        static News of(String place, byte[] content, String group) {
            if (content == null || content.length == 0) {
                return trouble(place + ": no plan; it was deleted");
            }
            try {
                return new News(Plan.parse(content, group), null);
            } catch (InvalidPlanException exception) {
                return trouble(place + ": " + exception.getMessage());
            }
        }

        static News trouble(String trouble) {
            return new News(null, trouble);
        }
    }

    /** The place could not be read, so that its plans are unknown. */
    final class UnreadException extends Exception {
        private static final long serialVersionUID = 1L;

        UnreadException(String message) {
            super(message);
        }
    }

    /** Returns what was published since the last call, oldest first; the first call returns everything. */
    List<News> news(Duration limit) throws UnreadException;

    /** Returns whether a reading is so quick that a member need not spare it. */
    boolean isQuick();

    /** Ends connections; the next call of {@link #news} returns everything again. */
    @Override
    void close();
}
